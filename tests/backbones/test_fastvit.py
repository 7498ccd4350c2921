"""FastViT against a twin that runs every branch of training, and reparameterisation by itself."""

import numpy as np
import onnxruntime
import pytest
from tests.backbones.naive_fastvit import fastvit_features, fastvit_state
from tests.runtime.nets.naive_nets import Naive

from wordreel.backbones.fastvit import FastViT, FastViTVariant
from wordreel.backbones.reparameterise import reparameterise
from wordreel.errors import WeightsError
from wordreel.runtime.nets.net_builder import build_onnx, weight_shapes

TINY = {
    "batch norm": FastViTVariant((1, 2, 1), 8, 2, squeezed=(1, 2)),
    "layer norm": FastViTVariant((1, 1, 1, 2), 8, 3, attention_stages=2, layer_norm=True),
}


def below_trunk(state):
    return {f"visual.trunk.{key}": value for key, value in state.items()}


@pytest.mark.parametrize("name", TINY)
def test_the_fused_graph_equals_the_branches_of_training(name):
    variant = TINY[name]
    size, dim = 40, 6
    state = fastvit_state(variant, dim)
    frames = np.random.default_rng(1).normal(size=(2, 3, size, size)).astype(np.float32)
    network = FastViT(variant, size, dim)
    fused = below_trunk(reparameterise(state))
    assert {key: value.shape for key, value in fused.items()} == weight_shapes(network)[0]
    session = onnxruntime.InferenceSession(build_onnx("image", network, fused).SerializeToString())
    features = session.run(None, {"frames": frames})[0]
    expected = fastvit_features(variant, state, frames)
    assert np.abs(expected).max() > 1e-2
    np.testing.assert_allclose(features, expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())


def test_a_fused_state_stays_as_it_is():
    fused = reparameterise(fastvit_state(TINY["batch norm"], 6))
    again = reparameterise(fused)
    assert all(again[key] is fused[key] for key in fused)
    assert set(again) == set(fused)


def test_kernels_of_all_sizes_are_centred():
    rng = np.random.default_rng(0)
    norm = {
        f"bn.{part}": rng.uniform(0.5, 1.5, 4).astype(np.float32)
        for part in ("weight", "bias", "running_mean", "running_var")
    }
    state = {f"{name}_conv.{key}": value for name in ("large", "small") for key, value in norm.items()}
    state |= {
        f"{name}_conv.conv.weight": rng.normal(size=(4, 1, k, k)) for name, k in (("large", 7), ("small", 3))
    }
    fused = reparameterise({f"block.{key}": value for key, value in state.items()})
    x = rng.normal(size=(1, 2, 9, 8))
    net = Naive(state)
    expected = sum(
        net.norm(net.conv(x, f"{name}_conv.conv", 2, pad, 2), f"{name}_conv.bn")
        for name, pad in (("large", 3), ("small", 1))
    )
    np.testing.assert_allclose(Naive(fused).conv(x, "block.reparam_conv", 2, 3, 2), expected, atol=1e-6)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda state: state.pop("stem.0.conv_kxk.0.bn.running_var"), "running_var"),
        (lambda state: state.update({"stem.2.identity.weight": np.ones(5)}), "8 channels"),
        (lambda state: state.update({"stem.1.conv_scale.conv.weight": np.ones((8, 1, 2, 2))}), "middle"),
        (lambda state: state.pop("stages.0.blocks.0.token_mixer.norm.identity.bias"), "identity.bias"),
    ],
)
def test_branches_that_do_not_fit_are_refused(damage, reason):
    state = fastvit_state(TINY["batch norm"], 6)
    damage(state)
    with pytest.raises(WeightsError, match=reason):
        reparameterise(state)
