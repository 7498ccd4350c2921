"""S3D (Xie et al. 2018): Inception with convolutions split into space and time, keys as in Min's release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from wordreel.runtime.nets.net_builder import NetBuilder

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
