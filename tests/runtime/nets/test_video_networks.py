"""The pieces of I3D against their definitions, and the whole against the published weights."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

from wordreel.runtime.nets import video_networks
from wordreel.runtime.nets.net_builder import build_onnx
from wordreel.runtime.sessions import Network
from wordreel.runtime.store import WeightStore

Array = NDArray[np.float64]
PUBLISHED_CLASSES = 400
PUBLISHED_CONVOLUTIONS = 57  # before the classes
PUBLISHED_KERNELS = 12_272_704  # numbers in their kernels, as counted in the weight file


def same(length: int, kernel: int, stride: int) -> tuple[int, int]:
    """TensorFlow's "SAME": padding before and after."""
    padding = max((-(-length // stride) - 1) * stride + kernel - length, 0)
    return padding // 2, padding - padding // 2


def pad_same(x: Array, kernel: tuple[int, ...], stride: tuple[int, ...], fill: float) -> Array:
    pads = [same(n, k, s) for n, k, s in zip(x.shape[1:], kernel, stride, strict=True)]
    return np.pad(x, [(0, 0), *pads], constant_values=fill)


def places(x: Array, kernel: tuple[int, ...], stride: tuple[int, ...]):
    """Every output position and the piece of the padded `x [channels, t, h, w]` under the kernel there."""
    counts = [(n - k) // s + 1 for n, k, s in zip(x.shape[1:], kernel, stride, strict=True)]
    for where in product(*map(range, counts)):
        cut = [slice(i * s, i * s + k) for i, s, k in zip(where, stride, kernel, strict=True)]
        yield where, x[(slice(None), *cut)]


def plain_pool(x: Array, kernel: tuple[int, int, int], stride: tuple[int, int, int]) -> Array:
    out = np.zeros((len(x), *[-(-n // s) for n, s in zip(x.shape[1:], stride, strict=True)]))
    for where, piece in places(pad_same(x, kernel, stride, -np.inf), kernel, stride):
        out[(slice(None), *where)] = piece.max(axis=(1, 2, 3))
    return out


def bytes_video(frames: int, size: int) -> NDArray[np.uint8]:
    return np.random.default_rng(frames * size).integers(0, 256, (frames, size, size, 3)).astype(np.uint8)


def scaled(video: NDArray[np.uint8]) -> Array:
    return (video / 127.5 - 1).transpose(3, 0, 1, 2)


def small_tree() -> dict[str, dict]:
    """A weight file of the published layout with two or three channels everywhere."""
    rng = np.random.default_rng(0)
    params: dict[str, dict] = {}
    stats: dict[str, dict] = {}

    def unit(before: int, after: int, size: int) -> tuple[dict, dict]:
        kernel = rng.normal(size=(size, size, size, before, after)).astype(np.float32) / size**1.5
        shape = (1, 1, 1, 1, after)
        return (
            {"Conv_0": {"kernel": kernel}, "BatchNorm_0": {"bias": rng.normal(size=after)}},
            {"BatchNorm_0": {"mean": rng.normal(size=shape), "var": rng.uniform(0.5, 2, shape)}},
        )

    for name, before, after, size in (
        ("Conv3d_1a_7x7", 3, 2, 7),
        ("Conv3d_2b_1x1", 2, 2, 1),
        ("Conv3d_2c_3x3", 2, 3, 3),
    ):
        params[name], stats[name] = unit(before, after, size)
    width = 3
    for block in video_networks.BLOCKS:
        parts = {}
        for name, path in video_networks.UNITS.items():
            parts[path] = unit(2 if name in ("b1b", "b2b") else width, 2, int(path[-1]))
        params[f"Mixed_{block}"] = {name: part[0] for name, part in parts.items()}
        stats[f"Mixed_{block}"] = {name: part[1] for name, part in parts.items()}
        width = 8
    return {"params": params, "batch_stats": stats}


def plain_network(tree: dict[str, dict], x: Array) -> Array:
    """The published wiring with plain three-dimensional layers and the batch norm where it stands."""

    def unit(x: Array, path: tuple[str, ...], stride: int = 1) -> Array:
        layer, stats = tree["params"], tree["batch_stats"]
        for key in path:
            layer, stats = layer[key], stats[key]
        weight = layer["Conv_0"]["kernel"].transpose(4, 3, 0, 1, 2)
        mean, variance = (stats["BatchNorm_0"][what].reshape(-1, 1, 1, 1) for what in ("mean", "var"))
        kernel, strides = weight.shape[2:], (stride,) * 3
        out = np.zeros((len(weight), *[-(-n // stride) for n in x.shape[1:]]))
        for where, piece in places(pad_same(x, kernel, strides, 0.0), kernel, strides):
            out[(slice(None), *where)] = np.tensordot(weight, piece, 4)
        normed = (out - mean) / np.sqrt(variance + 1e-3) + layer["BatchNorm_0"]["bias"].reshape(-1, 1, 1, 1)
        return np.maximum(normed, 0)

    def mixed(x: Array, name: str) -> Array:
        b0 = unit(x, (name, "Branch_0/Conv3d_0a_1x1"))
        b1 = unit(unit(x, (name, "Branch_1/Conv3d_0a_1x1")), (name, "Branch_1/Conv3d_0b_3x3"))
        b2 = unit(unit(x, (name, "Branch_2/Conv3d_0a_1x1")), (name, "Branch_2/Conv3d_0b_3x3"))
        b3 = unit(plain_pool(x, (3, 3, 3), (1, 1, 1)), (name, "Branch_3/Conv3d_0b_1x1"))
        return np.concatenate([b0, b1, b2, b3])

    x = plain_pool(unit(x, ("Conv3d_1a_7x7",), 2), (1, 3, 3), (1, 2, 2))
    x = plain_pool(unit(unit(x, ("Conv3d_2b_1x1",)), ("Conv3d_2c_3x3",)), (1, 3, 3), (1, 2, 2))
    x = plain_pool(mixed(mixed(x, "Mixed_3b"), "Mixed_3c"), (3, 3, 3), (2, 2, 2))
    for name in ("Mixed_4b", "Mixed_4c", "Mixed_4d", "Mixed_4e", "Mixed_4f"):
        x = mixed(x, name)
    x = mixed(mixed(plain_pool(x, (2, 2, 2), (2, 2, 2)), "Mixed_5b"), "Mixed_5c")
    return x.mean(axis=(1, 2, 3))


def test_the_wiring_is_the_published_one(tmp_path: Path) -> None:
    tree, video = small_tree(), bytes_video(16, 32)
    network = video_networks.I3D(16, 32, (2, 2, 3), ((2,) * 6,) * 9)
    onnx.save(build_onnx("i3d", network, video_networks.pytorch_layout(tree)), str(tmp_path / "small.onnx"))
    made = Network(tmp_path / "small.onnx")(frames=video)["features"][0]
    plain = plain_network(tree, scaled(video))
    assert np.abs(plain).max() > 0.1
    np.testing.assert_allclose(made, plain, atol=1e-4, rtol=1e-4)


@pytest.fixture(scope="module")
def folder() -> Path:
    store = WeightStore()
    if not store.has("i3d-kinetics400"):
        pytest.skip("needs `wordreel weights fetch i3d-kinetics400`")
    return store.folder("i3d-kinetics400")


def test_every_published_parameter_is_in_the_graph(folder: Path) -> None:
    model = onnx.load(str(folder / "network.onnx"))
    dims = {init.name: tuple(init.dims) for init in model.graph.initializer}
    kernels = [dims[node.input[1]] for node in model.graph.node if node.op_type == "Conv"]
    assert len(kernels) == PUBLISHED_CONVOLUTIONS
    assert sum(int(np.prod(shape)) for shape in kernels) == PUBLISHED_KERNELS


def test_the_head_has_the_published_classes(folder: Path) -> None:
    from safetensors.numpy import load_file

    head = load_file(str(folder / "head.safetensors"))
    assert head["weight"].shape == (PUBLISHED_CLASSES, 1024)
    assert head["bias"].shape == (PUBLISHED_CLASSES,)
