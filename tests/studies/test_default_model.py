import json

import numpy as np
import pytest
from common import T2V, V2T, plain
from default_model import COLLECTIONS, PUBLISHED, Row, asked_of, entries_beside, entries_of
from default_model_text import plots_of, text_of

from wordreel.retrieval.caption_ranks import Captions

TITLES = {collection.name: collection.title for collection in COLLECTIONS}
BY_NAME = {collection.name: collection for collection in COLLECTIONS}

OTHER = "another model"


@pytest.fixture
def seeds():
    """Two seeds of one model: plain rows in both directions."""
    made = []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        sims = rng.normal(size=(8, 4)).astype(np.float32)
        captions = Captions(4, np.repeat(np.arange(4), 2), np.ones(8, bool))
        back = np.ascontiguousarray(sims.T)
        made.append(
            [
                Row(T2V, "none", plain(sims, captions, hubness=True)),
                Row(V2T, "none", plain(back, captions, V2T, hubness=True)),
                Row(T2V, "DIS, bank, β by validation", plain(sims, captions, hubness=True), 20.0 + seed, 7),
            ]
        )
    return made


def test_seeds_are_averaged_and_published_rows_stand_beside_them(seeds):
    runs = {OTHER: seeds[:1], "default": seeds}
    entries = entries_of(BY_NAME["msvd-test"], runs, captioned=5)
    assert [(e["label"], e["direction"], e["runs"]) for e in entries[-3:]] == [
        ("default", "t2v", 2),
        ("default", "v2t", 2),
        ("default", "t2v", 2),
    ]
    assert entries[0]["missing"] == 1
    assert entries[0]["captions"] == 8
    r1 = [rows[0].figures.recall.r1 for rows in seeds]
    assert entries[3]["mean"]["r1"] == pytest.approx(np.mean(r1))
    published = json.loads(PUBLISHED.read_text())
    text = text_of(entries, published, TITLES)
    assert "| CE | – | none | – | 19.8 | 49.0 | 63.8 | 6.0 | – | published |" in text
    assert "20, 21" in text
    assert "1 videos could not be had" in text
    assert "CE (published)" in plots_of(entries, published, TITLES)["msvd-test"]


def test_rows_of_other_results_stand_beside_them(tmp_path):
    def result(name, *rows):
        kept = [{"collection": collection, "label": label, "from": name} for collection, label in rows]
        (tmp_path / name).write_text(json.dumps({"rows": kept}))
        return f"earlier={tmp_path / name}"

    first = result("a.json", ("msvd-test", "default"), ("msvd-test", "default"))
    second = result("b.json", ("msvd-test", "default"), ("coco-test", "default"))
    own = result("c.json", ("msrvtt-240", "without MSR-VTT")).removeprefix("earlier")
    found = [(row["collection"], row["label"], row["from"]) for row in entries_beside([first, second, own])]
    assert found == [
        ("msvd-test", "earlier default", "a.json"),
        ("msvd-test", "earlier default", "a.json"),
        ("coco-test", "earlier default", "b.json"),
        ("msrvtt-240", "without MSR-VTT", "c.json"),
    ]


def test_published_rows_are_complete():
    for row in json.loads(PUBLISHED.read_text()):
        assert row["source"]
        assert 0 < row["R1"] < row["R5"] < row["R10"] < 100
        assert row["collection"] in BY_NAME


def test_a_model_without_some_videos_is_asked_about_those_alone():
    def asked(label):
        return [collection.name for collection in COLLECTIONS if asked_of(collection, label)]

    assert asked("without MSVD") == ["msvd-test"]
    assert asked("without MSR-VTT") == ["msrvtt-240"]
    assert asked("without COCO") == ["coco-test"]
    assert asked("without Flickr8k") == ["flickr8k-dev"]
    assert asked("default") == asked(OTHER) == list(BY_NAME)
