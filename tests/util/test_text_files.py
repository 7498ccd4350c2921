import json

import pytest

from wordreel.errors import DatasetError, UnsafePickle
from wordreel.lab.datasets.annotation_files import read_id_list
from wordreel.lab.datasets.caption_pickles import join_captions, read_caption_mapping
from wordreel.util import text_files


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_lists_whatever_wrote_them(tmp_path, ending, mark):
    path = tmp_path / "test_list.txt"
    path.write_bytes((mark + ending.join(["video1", "", " video2 ", "café"])).encode())
    assert read_id_list(path) == ["video1", "video2", "café"]


def test_stray_bytes_of_old_files(tmp_path):
    path = tmp_path / "captions.txt"
    path.write_bytes("für 名前 ".encode() + b"caf\xe9 \x93quoted\x94 \x81")
    assert [line for _, line in text_files.read_lines(path)] == ["für 名前 café “quoted” \x81"]
    (tmp_path / "a.json").write_bytes(b'\xef\xbb\xbf{"a": "caf\xe9"}')
    assert text_files.read_json(tmp_path / "a.json") == {"a": "café"}


def test_files_that_are_no_text(tmp_path):
    path = tmp_path / "list.txt"
    path.write_bytes("video1\n".encode("utf-16"))
    with pytest.raises(DatasetError, match="UTF-16"):
        read_id_list(path)
    path.write_bytes(b"video1\nvid\0eo2\n")
    with pytest.raises(DatasetError, match=r"list.txt, line 2: this is not a text file"):
        read_id_list(path)
    with pytest.raises(DatasetError, match="cannot be read"):
        read_id_list(tmp_path / "none.txt")
    with pytest.raises(DatasetError, match="cannot be read"):
        read_id_list(tmp_path)


def test_a_line_has_a_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "MAX_LINE_CHARS", 100)
    path = tmp_path / "list.txt"
    path.write_text("short\n" + "x" * 1000)
    with pytest.raises(DatasetError, match="line 2: more than 100"):
        list(text_files.read_lines(path))
    monkeypatch.setattr(text_files, "MAX_JSON_BYTES", 10)
    with pytest.raises(DatasetError, match="bytes; the limit for JSON is 10"):
        text_files.read_json(path)


def test_lists_are_streamed(tmp_path):
    path = tmp_path / "list.txt"
    path.write_text("".join(f"video{n}\n" for n in range(10_000)))
    found = text_files.read_lines(path)
    assert next(found) == (1, "video0")
    found.close()


def test_an_id_listed_twice_is_named_with_both_lines(tmp_path):
    path = tmp_path / "list.txt"
    path.write_text("a\nb\n\na\n")
    with pytest.raises(DatasetError, match="line 4: 'a' is listed twice, first in line 1"):
        read_id_list(path)
    path.write_text("\n\n")
    with pytest.raises(DatasetError, match="lists nothing"):
        read_id_list(path)


def test_lists_in_csv(tmp_path):
    path = tmp_path / "MSRVTT_train.9k.csv"
    path.write_text("key,video_id\nr0,video1\nr1,video2\n")
    assert read_id_list(path) == ["video1", "video2"]
    path.write_text("key,video_id\nr0\n")
    with pytest.raises(DatasetError, match="line 2: 1 columns where the header names more"):
        read_id_list(path)
    path.write_text("video1\nvideo2\n")
    with pytest.raises(DatasetError, match="line 1: no column 'video_id'; there is video1"):
        read_id_list(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"a": 1,\n "b": }', "line 2, column 7"),
        ('{"a": 1, "b": 2, "a": 3}', "'a' stands twice"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a": ' + "9" * 5000 + "}", "cannot be read"),
    ],
)
def test_bad_json_says_where(tmp_path, content, message):
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(DatasetError, match=message):
        text_files.read_json(path)


def test_csv_faults_say_where(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text('a,b\n1,"open\n')
    with pytest.raises(DatasetError, match=r"x.csv, line 2: .*double"):
        list(text_files.read_rows(path, strict=True))


def test_pickles_are_only_containers(tmp_path):
    path = tmp_path / "raw-captions.pkl"
    path.write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    with pytest.raises(UnsafePickle, match=r"raw-captions.pkl.*captions again as JSON") as raised:
        read_caption_mapping(path)
    assert "weights" not in str(raised.value)
    path.write_bytes(b"not a pickle")
    with pytest.raises(UnsafePickle):
        read_caption_mapping(path)


def test_words_of_python_2(tmp_path):
    path = tmp_path / "raw-captions.pkl"
    path.write_bytes(b"(dp0\nS'v'\n((S'a'\nS'caf\\xc3\\xa9'\nS'\\xe9t\\xe9'\nllp1\ns.")
    assert join_captions(read_caption_mapping(path)["v"], "v") == ["a café été"]


@pytest.mark.parametrize("content", [[], {"v": 3}, {"v": [3]}, {"v": [[3]]}])
def test_tokens_of_another_shape(tmp_path, content):
    path = tmp_path / "raw.json"
    path.write_text(json.dumps(content))
    with pytest.raises(DatasetError, match=r"raw\.json"):
        join_captions(read_caption_mapping(path)["v"], str(path))
