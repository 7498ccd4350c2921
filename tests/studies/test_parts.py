import json

import numpy as np
import pytest
from common import captions_of
from parts import parts_of


@pytest.fixture
def data(tmp_path):
    said = {"coco": {"train": 9}, "flickr8k": {"train": 6, "dev": 2}}
    for name, splits in said.items():
        (tmp_path / name).mkdir()
        told = {s: {f"{s}{n}": [f"picture {n}"] for n in range(many)} for s, many in splits.items()}
        (tmp_path / name / "captions.json").write_text(json.dumps(told))
    return tmp_path


def test_parts_are_disjoint_and_drawn_by_one_rule(data):
    parts = parts_of(data, testing=3, choosing=2)
    assert {name: {part: len(ids) for part, ids in of.items()} for name, of in parts.items()} == {
        "coco": {"train": 4, "val": 2, "test": 3},
        "flickr8k": {"train": 4, "val": 2, "test": 2},
    }
    rng = np.random.default_rng(7)
    coco, flickr = rng.permutation(9), rng.permutation(6)
    assert parts["coco"]["test"] == [f"train{n}" for n in coco[:3]]
    assert parts["coco"]["val"] == [f"train{n}" for n in coco[3:5]]
    assert parts["flickr8k"]["val"] == [f"train{n}" for n in flickr[:2]]
    assert sorted(i for ids in parts["coco"].values() for i in ids) == [f"train{n}" for n in range(9)]


def test_cocos_captions_come_by_part(data):
    told = captions_of(data, "coco")
    assert len(told["test"]) == 9  # fewer than are held out
    assert told["train"] == {}
