"""Probabilities of classes as inputs: against a softmax in float64, and through the whole model."""

from dataclasses import replace

import numpy as np
import pytest

from wordreel.lab.models.config import ExpertConfig
from wordreel.lab.models.registry import reel
from wordreel.models.reel.class_inputs import class_track, is_class_input, recognisers, track_of
from wordreel.models.reel.model import Reel
from wordreel.runtime.store import WeightStore
from wordreel.types import Clip, Track

TIMES = np.array([[0.0, 2.0], [2.0, 4.0], [4.0, 6.0]])
CLIP = Clip("content", 0.0, 4.0)


def some_track(dim, seed=0):
    return Track(np.random.default_rng(seed).random((3, dim), np.float32), TIMES)


def test_names():
    assert [track_of(name) for name in ("sound-classes", "sound")] == ["sound", "sound"]
    assert is_class_input("motion-classes")
    assert not is_class_input("motion")
    assert not is_class_input("speech-classes")  # it has none


def test_rows_are_probabilities_of_the_recognisers_classes():
    (head,) = recognisers(["appearance", "appearance-classes"]).values()
    track = some_track(1280)
    found = class_track(track, head)
    scores = head.labels(track).scores.astype(np.float64)
    want = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found.values, want, rtol=1e-3, atol=1e-7)
    assert found.times is track.times


def test_the_model_reads_the_classes_of_a_clip():
    model = Reel(WeightStore())
    known = ExpertConfig("motion-classes", 400, "segments", max_tokens=1)
    rng = np.random.default_rng(1)
    mean, deviation = rng.random(400).astype(np.float32), rng.random(400).astype(np.float32) + 1
    own = {"motion-classes.mean": mean, "motion-classes.deviation": deviation}
    model.checkpoint = replace(model.checkpoint, scale={**model.checkpoint.scale, **own})
    model._config = replace(reel(), experts=(*reel().experts, known))
    tracks = {"motion": some_track(1024), "appearance": some_track(1280)}
    (tokens,) = model.tokens(tracks, [CLIP])
    assert set(tokens) == {"appearance", "motion", "motion-classes"}
    (head,) = recognisers(["motion-classes"]).values()
    rows = class_track(tracks["motion"], head).values[:2].mean(axis=0)
    np.testing.assert_allclose(tokens["motion-classes"][0], (np.sqrt(rows) - mean) / deviation, rtol=1e-4)
    (silent,) = model.tokens({"appearance": some_track(1280)}, [CLIP])
    assert "motion-classes" not in silent


@pytest.mark.parametrize(("alone", "speaks"), [((), False), (("sound",), True)])
def test_the_learned_row_speaks_of_sound_if_it_was_trained_on_sound_alone(alone, speaks):
    model = Reel(WeightStore())
    card = {**model.checkpoint.card, "training": {"recipe": {"run": {"alone": alone}}}}
    model.checkpoint = replace(model.checkpoint, card=card)
    tracks = {"sound": some_track(1024)}
    vectors, available = model.embed(tracks, [CLIP])
    assert available[0, 0] == speaks == bool(vectors[0, 0].any())
    assert ("seen" in model.explain(model.encode(["a bell"])[0], tracks, CLIP)) == speaks
