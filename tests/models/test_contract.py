"""The model contract: what every model declares, and wrappers that leave nothing of it out."""

import inspect

import numpy as np
import pytest

from wordreel.models.base import EmbeddedClip, Model, mixture_weights
from wordreel.serve.encoder import CachedQueryModel
from wordreel.types import Calibration, Clip, QueryEmbedding

CLIP = Clip("x", 0.0, 1.0)


class Plain(Model):
    """A model with no optional power."""

    name, dim, fingerprint = "plain", 2, "0" * 16
    experts = track_experts = ("a", "b")

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


@pytest.mark.parametrize("model", [Plain(), Powerful()], ids=["plain", "powerful"])
def test_a_cache_of_queries_passes_on_the_whole_contract(model):
    cached, query = CachedQueryModel(model), model.encode(["dog"])[0]
    declared = [*Model.__annotations__, "fingerprint"]
    assert {name: getattr(cached, name) for name in declared} == {n: getattr(model, n) for n in declared}
    assert cached.explain(query, {}, CLIP) == model.explain(query, {}, CLIP)
    assert (
        cached.explain_all(query, cached.evidence([EmbeddedClip({}, CLIP, np.zeros((2, 2)))] * 2))
        == [model.explain(query, {}, CLIP)] * 2
    )
    assert cached.compare({}, CLIP, {}, CLIP) == model.compare({}, CLIP, {}, CLIP)
    np.testing.assert_array_equal(cached.embed({}, [CLIP])[0], model.embed({}, [CLIP])[0])
    own = {name for name, _ in inspect.getmembers(Model, inspect.isfunction) if not name.startswith("_")}
    assert own <= set(vars(CachedQueryModel)), "a method of the contract is inherited, not passed on"
