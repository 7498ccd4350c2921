"""The default model as a whole: which rows speak of what."""

import numpy as np
import pytest

from wordreel.models.reel.model import PICTURES, Reel
from wordreel.models.registry import reel
from wordreel.types import Clip, Track
from wordreel.weights.store import WeightStore

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
