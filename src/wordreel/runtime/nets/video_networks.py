"""Published networks over short clips: R(2+1)D and S3D.

R(2+1)D (Tran et al. 2018) splits 3-D convolutions into space, then time, under the keys of torchvision's
video models. The IG-65M checkpoints differ from torchvision's own in two ways that matter: ε of the
normalisations is 1e-3, and the inner width of a block's second convolution is computed from that convolution
alone.

S3D (Xie et al. 2018) is an Inception whose convolutions are split the same way, keys as in Min's release.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from wordreel.runtime.nets.net_builder import NetBuilder


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
