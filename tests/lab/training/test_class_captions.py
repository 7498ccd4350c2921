"""Class inputs and class names of a library's stored tracks."""

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("torch")

from tests.lab.training.toys import toy_pairs

from wordreel.catalogue.store import LibraryStore
from wordreel.errors import TrainingError
from wordreel.experts import registry
from wordreel.experts.class_head import ClassHead
from wordreel.lab.training import recipe as recipes
from wordreel.lab.training.data import from_library
from wordreel.lab.training.data.class_captions import class_captions, with_class_captions
from wordreel.types import Absent, Clip, Track

HEADS = {
    "appearance": ClassHead(("otter", "apple"), np.eye(2, dtype=np.float32), np.zeros(2, np.float32), ""),
    "motion": ClassHead(("juggling", "yawning"), np.eye(2, dtype=np.float32), np.zeros(2, np.float32), ""),
}
TRACKS = {
    ("toy0", "appearance"): [[9.0, 0.0], [8.0, 0.0]],
    ("toy0", "motion"): [[0.1, 0.0]],
    ("toy1", "motion"): [[0.0, 7.0]],
    ("toy1", "appearance"): [[0.0, 7.0], [7.0, 0.0]],
}


class Stored(LibraryStore):
    """A library of a few tracks in memory."""

    def __init__(self):
        self.path = SimpleNamespace(name="stored")

    def track(self, content, expert):
        if (content, expert) not in TRACKS:
            return Absent("nothing")
        values = np.array(TRACKS[content, expert], np.float32)
        return Track(values, np.arange(len(values))[:, None] + np.array([0.0, 1.0]))

    def tracks(self, content=None):
        return [
            SimpleNamespace(content=name, expert=expert, fingerprint="f", present=True)
            for name, expert in TRACKS
        ]

    def files(self):
        return [SimpleNamespace(path=f"{name}.mp4", content=name) for name in ("toy0", "toy1")]

    def clips(self, content=None):
        names = ("toy0", "toy1")
        return [SimpleNamespace(content=n, whole=True, clip=Clip(n, 0.0, 9.0, True)) for n in names]


@pytest.fixture(autouse=True)
def heads(monkeypatch):
    monkeypatch.setattr(registry, "recogniser", lambda name, store=None: HEADS[name])


def test_confident_classes_become_captions_behind_the_others():
    pairs = toy_pairs(3, words=False)
    found = with_class_captions(pairs, Stored(), 0.6)
    said = [[caption.text for caption in captions[len(own) :]] for captions, own in
            zip(found.captions, pairs.captions, strict=True)]  # fmt: skip
    assert said == [["a photo of an otter"], ["a person is yawning"], []]
    assert all(new[: len(old)] == old for new, old in zip(found.captions, pairs.captions, strict=True))
    # The mean over the rows decides, not the best row.
    assert class_captions("appearance", HEADS["appearance"], np.array([[0.9, 0.1], [0.2, 0.8]]), 0.6) == []


def test_a_library_gives_probabilities_where_a_recipe_names_classes():
    told = {"toy0": ["an animal"], "toy1": ["a person"]}
    pairs = from_library(Stored(), told, ["motion", "motion-classes", "sound-classes"])
    assert set(pairs.rows) == {"motion", "motion-classes"}
    logits = pairs.rows["motion"].values.astype(np.float64)
    want = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(pairs.rows["motion-classes"].values, want, rtol=1e-5)


def test_recipes_choose_class_inputs_and_refuse_what_contradicts():
    names = ["appearance", "appearance-classes", "motion", "motion-classes"]
    chosen = recipes.load("reel", [f"model.experts={names}"])
    assert {e.name: (e.dim, e.max_tokens) for e in chosen.model.experts}["motion-classes"] == (400, 1)
    assert "motion-classes" not in recipes.load("reel").model.names
    with pytest.raises(TrainingError, match="limit"):
        recipes.load("reel", ["data.class_captions=0.5", "data.limit=3"])
    with pytest.raises(TrainingError, match="alone and alone_chance"):
        recipes.load("reel", ["run.alone_chance=0.1"])
    with pytest.raises(TrainingError, match=r"run\.alone names smell"):
        recipes.load("reel", ["run.alone_chance=0.1", 'run.alone=["smell"]'])
