"""The default model as a whole: which rows speak of what."""

import numpy as np
import pytest

from wordreel.lab.models.registry import reel
from wordreel.models.reel.model import PICTURES, Reel
from wordreel.runtime.store import WeightStore
from wordreel.types import Clip, Track
from wordreel.util.lru_cache import LRUCache

WHOLE = Clip("content", 0.0, 4.0, True)


@pytest.fixture(scope="module")
def model():
    return Reel(WeightStore())


def tracks(*names):
    rng = np.random.default_rng(0)
    times = np.array([[0.0, 2.0], [2.0, 4.0]])
    dims = {expert.name: expert.dim for expert in reel().experts}
    return {name: Track(rng.random((2, dims[name]), np.float32), times) for name in names}


def test_the_learned_row_wants_pictures(model):
    for names, speaks in ((("sound",), False), (("sound", "motion"), True), (("appearance",), True)):
        vectors, available = model.embed(tracks(*names), [WHOLE])
        assert available[0, 0] == speaks == any(name in PICTURES for name in names)
        assert bool(vectors[0, 0].any()) == speaks
        assert ("seen" in model.explain(model.encode(["a dog"])[0], tracks(*names), WHOLE)) == speaks


def test_sound_alone_is_found_by_sound(model):
    _, available = model.embed(tracks("sound"), [WHOLE])
    assert [model.experts[row] for row in np.flatnonzero(available[0])] == ["sound"]


def test_encoding_with_both_networks_at_once_equals_one_after_the_other(model, monkeypatch):
    texts = ["a man peels an apple", "two people play chess"]
    monkeypatch.setenv("WORDREEL_THREADS", "2")
    encoded = []
    for few in (len(texts), 0):
        monkeypatch.setattr("wordreel.models.reel.model.FEW", few)
        for encoder in (model._encoder, model._bridge._encoder):
            monkeypatch.setattr(encoder, "_cache", LRUCache(1))  # so that the networks run each time
        encoded.append(model.encode(texts))
    for one, other in zip(*encoded, strict=True):
        assert one.text == other.text
        np.testing.assert_array_equal(one.vectors, other.vectors)
        np.testing.assert_array_equal(one.weights, other.weights)
