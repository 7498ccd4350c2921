import json

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from tests.runtime.nets.tiny_efficientnet import fold, slow_network, tiny_weights

from wordreel.errors import WeightsCorrupt
from wordreel.experts.appearance import BYTES, FORMAT, HEAD, KEY, SCALES, AppearanceFile
from wordreel.runtime.mapped_arrays import quantise
from wordreel.runtime.nets.efficientnet_lite import build
from wordreel.runtime.sessions import Network

FACTS = {"size": 32, "trained_on": "noise"}


def save_appearance(path, weights, card):
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
    save_file(arrays, path, metadata={KEY: json.dumps({"format": FORMAT, **card})})


@pytest.fixture
def file(tmp_path):
    save_appearance(tmp_path / "a.safetensors", tiny_weights(), FACTS)
    return AppearanceFile(tmp_path / "a.safetensors")


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
    found = file.layers()
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-5, atol=1e-6, err_msg=name)


def test_the_network_of_the_file_is_near_the_network_that_was_saved(file):
    """The graph has the strides of the real network, where blocks 1 and 4 halve."""
    images = np.random.default_rng(2).integers(0, 256, (4, 20, 20, 3), dtype=np.uint8)
    found = file.network()(images=images)["features"]
    exact = slow_network(images, tiny_weights())
    cosine = (found * exact).sum() / np.linalg.norm(found) / np.linalg.norm(exact)
    assert 0.999 < cosine < 1
    rounded = Network(build(slow_file(tiny_weights())).SerializeToString())(images=images)["features"]
    np.testing.assert_allclose(found, rounded, atol=1e-4)


def test_the_classifier(file):
    weights = tiny_weights()
    weight, bias = file.head()
    np.testing.assert_allclose(weight, weights["_fc.weight"], atol=np.abs(weights["_fc.weight"]).max() / 250)
    np.testing.assert_array_equal(bias, weights["_fc.bias"])


def damaged(path, arrays, card):
    save_file(arrays, path, metadata={KEY: json.dumps(card)})
    return AppearanceFile(path)


def test_damaged_files_are_refused(tmp_path, file):
    with pytest.raises(WeightsCorrupt, match="not a whole appearance network"):
        AppearanceFile(tmp_path / "absent")
    (tmp_path / "short").write_bytes((tmp_path / "a.safetensors").read_bytes()[:-9])
    with pytest.raises(WeightsCorrupt, match="not a whole appearance network"):
        AppearanceFile(tmp_path / "short").layers()
    arrays = load_file(tmp_path / "a.safetensors")
    with pytest.raises(WeightsCorrupt, match="format is 9"):
        damaged(tmp_path / "later", arrays, {"format": 9}).head()
    for missing in ("_fc.bias", "_fc.weight/scales"):
        less = {name: array for name, array in arrays.items() if name != missing}
        with pytest.raises(WeightsCorrupt, match=missing):
            damaged(tmp_path / "less", less, {"format": 1}).head()
    less = {name: array for name, array in arrays.items() if name != "_conv_head.bias"}
    with pytest.raises(WeightsCorrupt, match="_conv_head\\.bias"):
        damaged(tmp_path / "less", less, {"format": 1}).network()


@pytest.mark.parametrize("card", ["", "[]", "[" * 5000, '{"format": "1"}'])
def test_cards_that_are_none(tmp_path, card):
    path = tmp_path / "x.safetensors"
    save_file({"_fc.bias": np.zeros(3, np.float32)}, path, {KEY: card})
    with pytest.raises(WeightsCorrupt, match="not a whole appearance network"):
        AppearanceFile(path)


def test_scales_that_do_not_fit_their_bytes(tmp_path):
    path = tmp_path / "x.safetensors"
    arrays = {"_fc.weight/bytes": np.ones((3, 4), np.int8), "_fc.weight/scales": np.ones(2, np.float32)}
    save_file(arrays, path, {KEY: '{"format": 1}'})
    with pytest.raises(WeightsCorrupt, match=r"_fc.weight has no scale for each row"):
        AppearanceFile(path).head()
