"""The model contract: what every model declares."""

import numpy as np
import pytest

from wordreel.models.base import Model, mixture_weights
from wordreel.types import Calibration, Clip, QueryEmbedding

CLIP = Clip("x", 0.0, 1.0)


class Plain(Model):
    """A model with no optional power."""

    name, dim, fingerprint = "plain", 2, "0" * 16
    experts = ("a", "b")
    track_experts: tuple[str, ...] = experts

    def embed(self, tracks, clips):
        return np.ones((len(clips), 2, 2), np.float32), np.ones((len(clips), 2), bool)

    def encode(self, texts):
        return [QueryEmbedding(np.ones((2, 2), np.float32), np.ones(2, np.float32), text) for text in texts]


class Powerful(Plain):
    track_experts = ("a", "b", "c")
    expert_weights = (1.0, 0.5)
    calibration = Calibration(2.0, 0.5, 0.5, 0.5, 3.0)

    def explain(self, query, tracks, clip):
        return {"a": (f"saw {query.text}", None)}

    def compare(self, tracks, clip, other_tracks, other_clip):
        return {"b": ("both", (0.0, 1.0))}


def test_a_model_without_powers_says_so():
    model = Plain()
    assert (model.expert_weights, model.calibration) == (None, None)
    assert model.explain(model.encode(["dog"])[0], {}, CLIP) == model.compare({}, CLIP, {}, CLIP) == {}
    assert mixture_weights(model).tolist() == [1, 1]
    assert mixture_weights(Powerful()).tolist() == [1, 0.5]


def test_what_every_model_must_have_is_required():
    class Half(Model):
        def embed(self, tracks, clips):
            raise NotImplementedError

    with pytest.raises(TypeError, match=r"abstract.*encode.*fingerprint"):
        Half()
