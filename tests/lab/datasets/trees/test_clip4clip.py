import json

import pytest
from tests.lab.datasets.trees.published import TEST, TEXTS, TRAIN, write_clip4clip

from wordreel.errors import DatasetError
from wordreel.lab.datasets.trees import open_tree

JOINED = {item: [" ".join(texts)] for item, texts in TEXTS.items()}


@pytest.mark.parametrize(
    ("dataset", "train", "test", "captions", "ending"),
    [
        ("MSRVTT", "train-9k", "test", TEXTS, ""),
        ("MSVD", "train", "test", TEXTS, ""),
        ("LSMDC", "train", "test", TEXTS, ""),
        ("ActivityNet", "train", "val", JOINED, ""),
        ("DiDeMo", "train", "test", JOINED, ".mov"),
    ],
)
def test_every_dataset_reads_back_with_its_videos(tmp_path, dataset, train, test, captions, ending):
    write_clip4clip(tmp_path / "data", dataset)
    tree = open_tree(tmp_path / "data")
    assert (tree.kind, tree.dataset, tree.experts) == ("clip4clip", dataset, ())
    assert {train, test} <= set(tree.splits)
    assert tree.split(train).captions == {f"{item}{ending}": captions[item] for item in TRAIN}
    told = captions if dataset != "MSRVTT" else {item: texts[:1] for item, texts in TEXTS.items()}
    assert tree.split(test).captions == {f"{item}{ending}": told[item] for item in TEST}
    for item in tree.split(test).items:
        assert item.path is not None
        assert open(item.path).read() == item.id.removesuffix(".mov")  # noqa: PTH123, SIM115


def test_videos_elsewhere_and_videos_nowhere(tmp_path):
    write_clip4clip(tmp_path / "data", "MSVD")
    (tmp_path / "data" / "videos").rename(tmp_path / "films")
    tree = open_tree(tmp_path / "data")
    assert {item.path for item in tree.split("test").items} == {None}
    assert "video files" in {found.what for found in tree.missing}
    tree = open_tree(tmp_path / "data", videos=tmp_path / "films")
    assert all(item.path for item in tree.split("test").items)
    assert "video files" not in {found.what for found in tree.missing}


def test_annotations_that_are_not(tmp_path):
    write_clip4clip(tmp_path / "data", "ActivityNet")
    for told in ([], {"v_video2": 3}, {"v_video2": {}}, "x"):
        (tmp_path / "data" / "val_1.json").write_text(json.dumps(told))
        with pytest.raises(DatasetError):
            open_tree(tmp_path / "data").split("val")
    (tmp_path / "data" / "val_1.json").write_text("[" * 100_000)
    with pytest.raises(DatasetError, match="nested too deeply"):
        open_tree(tmp_path / "data").split("val")


def test_there_are_no_features(tmp_path):
    write_clip4clip(tmp_path / "data", "MSVD")
    with pytest.raises(DatasetError, match="wordreel add"):
        open_tree(tmp_path / "data").read("rgb", "video0")
