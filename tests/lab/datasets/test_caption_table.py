import csv
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wordreel.errors import DatasetError
from wordreel.lab.datasets.caption_table import FIELDS, SUFFIXES, read_caption_table
from wordreel.lab.datasets.types import Caption, Item


def written(tmp_path, content, name="mine.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_rows_of_one_path_are_one_item(tmp_path):
    path = written(
        tmp_path,
        "path,caption,start,end,split\n"
        'a.mp4,"a man, ""the"" singer,\nsings",,,train\n'
        "sub/b.mp4,rain,1.5,3,test\n"
        "a.mp4,he bows,4,,train\n",
    )
    found = read_caption_table(path)
    assert found.items == (
        Item(
            "a.mp4",
            (Caption('a man, "the" singer,\nsings'), Caption("he bows", 4.0)),
            str(tmp_path / "a.mp4"),
        ),
        Item("sub/b.mp4", (Caption("rain", 1.5, 3.0),), str(tmp_path / "sub/b.mp4")),
    )
    assert [item.id for item in read_caption_table(path, "test").items] == ["sub/b.mp4"]
    with pytest.raises(DatasetError, match="no split 'val'; it has test, train"):
        read_caption_table(path, "val")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", b"\xef\xbb\xbfCaption , PATH,extra\r\ncaf\xe9,a.mp4,9\r\n"),
        ("a.csv", "path;caption\na.mp4;café\n".encode()),
        ("a.tsv", "path\tcaption\na.mp4\tcafé\n".encode()),
        ("a.jsonl", '{"path": "a.mp4", "caption": "café", "start": null}\n\n'.encode()),
    ],
)
def test_whatever_program_wrote_it(tmp_path, name, content):
    found = read_caption_table(written(tmp_path, content, name))
    assert found.captions == {"a.mp4": ["café"]}
    assert found.items[0].path == str(tmp_path / "a.mp4")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "a.mp4,a man\n", "line 1: no column 'path'.*make the first line the header: path,caption"),
        ("a.csv", "path,text\na.mp4,a man\n", "no column 'caption'"),
        ("a.csv", "path,caption,path\na,b,c\n", "two columns are called 'path'"),
        ("a.csv", "path,caption\na.mp4\n", "line 2: 'caption' is missing"),
        ("a.csv", "path,caption\na.mp4,red, green\n", "line 2: 3 fields under 2 columns; put captions"),
        ("a.csv", "path,caption,start\na.mp4,x,1:30\n", "line 2: start '1:30' is not a number"),
        ("a.csv", "path,caption,start\na.mp4,x,-1\n", "line 2: -1.0 is no time"),
        ("a.csv", "path,caption,start\na.mp4,x,nan\n", "line 2: nan is no time"),
        ("a.csv", "path,caption\n,x\n", "line 2: no path"),
        ("a.csv", 'path,caption\na.mp4,"x\n', "line 2"),
        ("a.csv", "path,caption\n", "nothing for split"),
        ("a.csv", "", "nothing for split"),
        ("a.jsonl", '{"path": "a"}\n', "line 1: 'caption' is missing"),
        ("a.jsonl", '{"path": "a", "caption": 3}\n', "'caption' is int, not text"),
        ("a.jsonl", '{"path": "a", "caption": "x", "end": [1]}\n', "a time is list"),
        ("a.jsonl", '{"path": "a", "caption": "x", "end": true}\n', "a time is bool"),
        ("a.jsonl", '{"path": "a", "caption": "x", "end": 1' + "0" * 400 + "}", "is no time"),
        ("a.jsonl", "\n[1]\n", "line 2: each line must be an object"),
        ("a.jsonl", "{\n", "line 1: not JSON"),
        ("a.jsonl", "[" * 100_000, "line 1: not JSON"),
    ],
)
def test_faults_name_the_line(tmp_path, name, content, message):
    with pytest.raises(DatasetError, match=message):
        read_caption_table(written(tmp_path, content, name))


def test_no_splits_to_choose_from(tmp_path):
    with pytest.raises(DatasetError, match="none: leave the split out"):
        read_caption_table(written(tmp_path, "path,caption\na,x\n"), "test")


texts = (
    st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), min_size=1).map(str.strip).filter(bool)
)
times = st.none() | st.floats(0, 1e6)
names = st.text("abcdefgh é,;\"'{}.", min_size=1, max_size=8).map(lambda name: "x" + name.strip())


@st.composite
def spans(draw):
    start, end = draw(times), draw(times)
    return (end, start) if start is not None and end is not None and start > end else (start, end)


items = st.dictionaries(
    names, st.lists(st.tuples(texts, spans()), min_size=1, max_size=3), min_size=1, max_size=4
)


def write_table(path, rows):
    """What a careful program writes: quoted fields, or one JSON object a line without what is not given."""
    with path.open("w", encoding="utf-8", newline="") as file:
        if delimiter := SUFFIXES[path.suffix]:
            sheet = csv.writer(file, delimiter=delimiter, lineterminator="\n")
            sheet.writerow(FIELDS)
            sheet.writerows(["" if value is None else value for value in row] for row in rows)
            return
        for row in rows:
            fields = {name: value for name, value in zip(FIELDS, row, strict=True) if value is not None}
            file.write(json.dumps(fields, ensure_ascii=False) + "\n")


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl"])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(items=items)
def test_what_is_written_is_read_back(tmp_path, suffix, items):
    path = tmp_path / f"mine{suffix}"
    write_table(path, [(name, text, *span, "train") for name, rows in items.items() for text, span in rows])
    assert read_caption_table(path, "train").items == tuple(
        Item(name, tuple(Caption(text, *span) for text, span in rows), str(tmp_path / name))
        for name, rows in items.items()
    )


def test_items_without_captions_and_elsewhere(tmp_path):
    path = tmp_path / "mine.csv"
    write_table(path, [("/films/v1.mp4", "x", None, None, None), ("v2", "", None, None, None)])
    found = read_caption_table(path)
    assert [(item.id, Path(item.path).name) for item in found.items] == [
        ("/films/v1.mp4", "v1.mp4"),
        ("v2", "v2"),
    ]
    assert found.captions["v2"] == []
