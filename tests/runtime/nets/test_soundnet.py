"""SoundNet against its definition, one layer after the other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

from wordreel.experts.sound import FIRST, STEP
from wordreel.runtime.nets import sound_networks
from wordreel.runtime.sessions import Network

Array = NDArray[np.float64]


def small_layers() -> dict[str, dict[str, Array]]:
    """A weight file of the published layout with three channels everywhere."""
    rng = np.random.default_rng(0)
    layers = {}
    for before, (name, (kernel, _)) in zip((1, *[3] * 6), sound_networks.LAYERS.items(), strict=True):
        layers[name] = {
            "weights": rng.normal(size=(kernel, 1, before, 3)) / kernel**0.5,
            "biases": rng.normal(size=3),
            "mean": rng.normal(size=3),
            "var": rng.uniform(0.5, 2.0, size=3),
            "gamma": rng.uniform(0.5, 2.0, size=3),
            "beta": rng.normal(size=3),
        }
    for name, classes in (("conv8", 5), ("conv8_2", 4)):
        layers[name] = {"weights": rng.normal(size=(8, 1, 3, classes)), "biases": rng.normal(size=classes)}
    return layers


def plain(layers: dict[str, dict[str, Array]], sound: Array) -> Array:
    """`[rows, channels]`: kernels and pools as tables of (kernel, stride, padding), with loops over time."""
    x = (sound * 256.0)[:, None]
    sizes = [(64, 32, 8), (32, 16, 8), (16, 8, 1), (8, 4, 1), (4, 2, 4), (4, 2, 1), (4, 2, 1)]
    for (kernel, padding, pool), (name, p) in zip(sizes, layers.items(), strict=False):
        assert p["weights"].shape[0] == kernel, name
        padded = np.pad(x, ((padding, padding), (0, 0)))
        starts = range(0, len(padded) - kernel + 1, 2)
        x = np.stack([np.tensordot(padded[i : i + kernel], p["weights"][:, 0], 2) for i in starts])
        x = p["gamma"] * (x + p["biases"] - p["mean"]) / np.sqrt(p["var"] + 1e-5) + p["beta"]
        x = np.maximum(x, 0)
        x = np.stack([x[i : i + pool].max(0) for i in range(0, len(x) - pool + 1, pool)])
    return x


@pytest.mark.parametrize("samples", [70_000, 100_001])
def test_the_graph_is_the_published_network(tmp_path: Path, samples: int) -> None:
    sound = np.sin(np.arange(samples) ** 1.3 / 50) * 0.01
    layers = small_layers()
    onnx.save(sound_networks.build(layers), str(tmp_path / "small.onnx"))
    made = Network(tmp_path / "small.onnx")(sound=sound.astype(np.float32))["features"]
    expected = plain(layers, sound)
    assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(made, expected, atol=1e-3, rtol=1e-3)


def grid():
    """Where the middle of the first conv7 row lies, and how far apart rows are, both in samples.

    Output i of a layer with kernel k, stride s and padding p sees inputs around i·s - p + (k - 1) / 2.
    """
    middle, step = 0.0, 1
    for kernel, pool in sound_networks.LAYERS.values():
        middle, step = middle + step * ((kernel - 1) / 2 - kernel // 2), step * 2
        middle, step = middle + step * (pool - 1) / 2, step * pool
    return middle, step


def test_rows_stand_where_the_sound_is(tmp_path: Path) -> None:
    """With kernels that average, a late click moves the rows whose middle is near it and no others."""
    layers = small_layers()
    for name, layer in layers.items():
        layer["weights"] = np.full_like(layer["weights"], 1 / layer["weights"].shape[0])
        if not name.startswith("conv8"):
            layer |= {"biases": np.zeros(3), "mean": np.zeros(3), "var": np.ones(3), "gamma": np.ones(3)}
            layer["beta"] = np.zeros(3)
    onnx.save(sound_networks.build(layers), str(tmp_path / "mean.onnx"))
    network = Network(tmp_path / "mean.onnx")
    first, step = grid()
    assert (first, step) == (FIRST, STEP)
    for row in (5, 8):
        middle = int(first + row * step)
        click = np.zeros(14 * step, np.float32)
        click[middle - 500 : middle + 500] = 1.0
        response = network(sound=click)["features"][:, 0]
        assert response.argmax() in (row - 1, row, row + 1)
        weights = response / response.sum()
        assert abs(weights @ np.arange(len(response)) - row) < 0.5


def test_the_head_keeps_both_classifiers() -> None:
    layers = small_layers()
    head = sound_networks.head(layers)
    assert {name: value.shape for name, value in head.items()} == {
        "objects.weight": (8, 3, 5),
        "objects.bias": (5,),
        "places.weight": (8, 3, 4),
        "places.bias": (4,),
    }
    np.testing.assert_array_equal(
        head["places.weight"], layers["conv8_2"]["weights"][:, 0].astype(np.float32)
    )
