import json
import os
import re
from pathlib import Path

import pytest

from wordreel.errors import DatasetError
from wordreel.lab.datasets import protocols
from wordreel.lab.datasets.json_captions import read_ids
from wordreel.lab.datasets.registry import DATASETS, read, read_published


def put(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_a_protocol_applies_its_rule_and_a_dataset_does_not(tmp_path):
    entries = [{"video": "a.mov", "description": text, "times": [[0, 0]]} for text in ("one", "two")]
    put(tmp_path / "test_data.json", entries)
    put(tmp_path / "train_data.json", entries)
    assert read("didemo-paragraph", folder=tmp_path).captions == {"a": ["one two"]}
    assert read("didemo-paragraph", "train", folder=tmp_path).captions == {"a": ["one two"]}
    assert read("didemo", "test", tmp_path).captions == {"a": ["one", "two"]}
    with pytest.raises(DatasetError, match="didemo has several splits; choose one of train, val, test"):
        read("didemo", folder=tmp_path)


def test_first_captions_only(tmp_path):
    sentences = [{"caption": text, "video_id": "video1"} for text in ("first", "second")]
    put(tmp_path / "MSRVTT_data.json", {"videos": [{"video_id": "video1"}], "sentences": sentences})
    put(tmp_path / "test_list_miech.txt", "video1")
    assert read("msrvtt-1k-b", folder=tmp_path).captions == {"video1": ["first"]}


def test_coco_counts_five_captions(tmp_path):
    image = {"filename": "a.jpg", "split": "test", "sentences": [{"raw": str(n)} for n in range(7)]}
    put(tmp_path / "dataset_coco.json", {"images": [image]})
    assert read("coco-5k", folder=tmp_path).captions == {"a.jpg": ["0", "1", "2", "3", "4"]}


def test_names_that_are_nearly_right(tmp_path):
    with pytest.raises(DatasetError, match=r"did you mean .*didemo"):
        read("didem", folder=tmp_path)
    with pytest.raises(DatasetError, match="give the folder of its annotation files"):
        read("msvd")
    with pytest.raises(DatasetError, match="neither a caption file"):
        read("nothing")
    with pytest.raises(DatasetError, match="name the dataset it holds"):
        read(tmp_path)


@pytest.mark.parametrize("name", DATASETS)
def test_an_empty_folder_is_told_what_it_lacks(tmp_path, name):
    for split in DATASETS[name].splits:
        with pytest.raises(DatasetError, match=r"\(.+\..+\) not found in .* Without it: "):
            read_published(name, split, tmp_path)


@pytest.mark.parametrize("name", DATASETS)
@pytest.mark.parametrize("content", ["", "[]", "{}", "3", "\0", "a", '[{"a": 1}]', '{"a": 1}', "a,b\n1,2\n"])
def test_foreign_content_in_a_file_of_that_name(tmp_path, name, content):
    for wanted in DATASETS[name].files.values():
        for file in wanted.names:
            if not file.endswith(".pkl"):
                (tmp_path / file).write_text(content)
    for split in DATASETS[name].splits:
        with pytest.raises(DatasetError, match=f"{re.escape(str(tmp_path))}|{name}"):
            read_published(name, split, tmp_path)


def test_json_addresses(tmp_path):
    path = put(
        tmp_path / "captions.json", {"dev": {"a": "one", "b": ["two", "", "three"]}, "test": {"c": ["x"]}}
    )
    assert read(f"{path}:dev").captions == {"a": ["one"], "b": ["two", "three"]}
    assert read(str(path), "test").captions == {"c": ["x"]}
    with pytest.raises(DatasetError, match=r"it has dev, test; give the address as FILE.json:key"):
        read(path)
    with pytest.raises(DatasetError, match="no 'train' in dev, test"):
        read(f"{path}:train")


def test_captions_for_evaluation(tmp_path):
    path = put(tmp_path / "captions.json", {"a": "one", "b.mp4": ["two"]})
    assert read(path).captions == {"a": ["one"], "b.mp4": ["two"]}
    table = put(tmp_path / "mine.csv", "path,caption\nfilms/a.mp4,one\nfilms/a.mp4,two\n")
    assert read(table).captions == {"films/a.mp4": ["one", "two"]}
    ids = put(tmp_path / "splits.json", {"official": {"test": ["a", 3]}})
    assert read_ids(f"{ids}:official.test") == ["a", "3"]
    assert read_ids(str(put(tmp_path / "ids.txt", "a\nb"))) == ["a", "b"]
    with pytest.raises(DatasetError, match="not a list of ids"):
        read_ids(f"{ids}:official")


def captioned(folder):
    put(folder / "captions.json", {"a": ["one"], "b": ["two", "three"], "c": ["four"]})
    put(folder / "splits.json", {"official": {"train": ["a"], "test": ["b", "c"]}, "missing_videos": ["c"]})
    put(folder / "videos" / "b.mp4", "")


def test_a_captioned_folder(tmp_path):
    captioned(tmp_path)
    found = read("msvd", folder=tmp_path)
    assert (found.dataset, found.name, found.captions) == ("msvd", "test", {"b": ["two", "three"]})
    assert found.items[0].path == str(tmp_path / "videos" / "b.mp4")
    assert "1 of 2 items" in found.missing[0].what
    assert protocols.deviations(protocols.load("msvd"), found) == ("1 items instead of 670",)
    assert list(read(tmp_path).captions) == ["a", "b"]
    with pytest.raises(DatasetError, match="no split 'val'; it has train, test"):
        read(tmp_path, "val")
    put(tmp_path / "splits.json", {"test": ["a", "a"]})
    with pytest.raises(DatasetError, match="'test' lists an id twice"):
        read(tmp_path, "test")
    (tmp_path / "splits.json").unlink()
    with pytest.raises(DatasetError, match="leave the split out"):
        read(tmp_path, "test")


def test_a_captioned_folder_by_split(tmp_path):
    put(tmp_path / "captions.json", {"train": {"a.webp": ["one"]}, "dev": {"b.webp": ["two"]}})
    put(tmp_path / "images" / "b.webp", "")
    found = read("flickr8k", "val", tmp_path)
    assert found.captions == {"b.webp": ["two"]}
    assert found.items[0].path.endswith("images/b.webp")
    assert len(read(tmp_path).items) == 2
    with pytest.raises(DatasetError, match="no split 'test'; it has train, dev"):
        read("flickr8k", folder=tmp_path)


@pytest.mark.slow
def test_real_folders():
    data = os.environ.get("WORDREEL_TEST_DATA")
    if not data:
        pytest.skip("set WORDREEL_TEST_DATA to the folder that holds msvd, msrvtt and flickr8k")
    root = Path(data)
    counts = {split: len(read("msvd", split, root / "msvd").items) for split in ("train", "val", "test")}
    assert sum(counts.values()) == 1936
    assert counts["test"] == 657
    assert protocols.deviations(protocols.load("msvd"), read("msvd", folder=root / "msvd")) == (
        "657 items instead of 670",
    )
    whole = read(root / "msvd" / "captions.json").captions
    assert (len(whole), sum(map(len, whole.values()))) == (1970, 80_827)
    heard = read("msrvtt", folder=root / "msrvtt")
    assert (len(heard.items), {len(item.captions) for item in heard.items}) == (240, {20})
    for split, count in (("train", 3500), ("dev", 1000)):
        seen = read("flickr8k", split, root / "flickr8k")
        assert (len(seen.items), {len(item.captions) for item in seen.items}) == (count, {5})
        assert all(item.path and Path(item.path).is_file() for item in seen.items)
