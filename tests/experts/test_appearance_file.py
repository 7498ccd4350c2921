import numpy as np
import pytest
from safetensors.numpy import save_file
from tests.runtime.nets.tiny_efficientnet import fold, slow_network, tiny_weights

from wordreel.experts.appearance import BYTES, HEAD, SCALES, read_arrays
from wordreel.runtime.mapped_arrays import quantise
from wordreel.runtime.nets.efficientnet_lite import build
from wordreel.runtime.sessions import Network


def save_appearance(path, weights):
    """Write a file as the one that ships was written."""
    arrays = {}
    head = {name: weights[name] for name in (f"{HEAD}weight", f"{HEAD}bias")}
    for name, array in {**fold(weights), **head}.items():
        if array.ndim == 1:
            arrays[name] = array.astype(np.float32)
        elif array[0, 0].size == 1:
            matrix = array.reshape(array.shape[:2]).astype(np.float32)
            arrays[name + BYTES], arrays[name + SCALES] = quantise(matrix)
        else:
            arrays[name] = array.astype(np.float16)
    save_file(arrays, path)


@pytest.fixture
def file(tmp_path):
    save_appearance(tmp_path / "a.safetensors", tiny_weights())
    return tmp_path / "a.safetensors"


def slow_file(weights):
    """What the file must give back: rows of matrices on 127 steps, kernels over space in half precision."""
    expected = {}
    for name, array in fold(weights).items():
        if array.ndim == 1:
            expected[name] = array
        elif array.shape[2:] == (1, 1):
            rows = []
            for row in array:
                step = np.abs(row).max() / 127
                rows.append(np.round(row / step) * step)
            expected[name] = np.stack(rows)
        else:
            expected[name] = array.astype(np.float16)
    return expected


def test_the_file_gives_back_the_rounded_layers(file):
    expected = slow_file(tiny_weights())
    found = read_arrays(file)
    assert {name for name in found if not name.startswith(HEAD)} == expected.keys()
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-5, atol=1e-6, err_msg=name)


def test_the_network_of_the_file_is_near_the_network_that_was_saved(file):
    """The graph has the strides of the real network, where blocks 1 and 4 halve."""
    images = np.random.default_rng(2).integers(0, 256, (4, 20, 20, 3), dtype=np.uint8)
    found = Network(build(read_arrays(file)).SerializeToString())(images=images)["features"]
    exact = slow_network(images, tiny_weights())
    cosine = (found * exact).sum() / np.linalg.norm(found) / np.linalg.norm(exact)
    assert 0.999 < cosine < 1
    rounded = Network(build(slow_file(tiny_weights())).SerializeToString())(images=images)["features"]
    np.testing.assert_allclose(found, rounded, atol=1e-4)


def test_the_classifier(file):
    weights = tiny_weights()
    arrays = read_arrays(file, HEAD)
    weight, bias = arrays["_fc.weight"], arrays["_fc.bias"]
    np.testing.assert_allclose(weight, weights["_fc.weight"], atol=np.abs(weights["_fc.weight"]).max() / 250)
    np.testing.assert_array_equal(bias, weights["_fc.bias"])
