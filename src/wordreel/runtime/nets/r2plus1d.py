"""R(2+1)D (Tran et al. 2018): 3-D convolutions split into space, then time. torchvision's video key names.

The IG-65M checkpoints differ from torchvision's own in two ways that matter: ε of the normalisations is
1e-3, and the inner width of a block's second convolution is computed from that convolution alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from wordreel.runtime.nets.net_builder import NetBuilder

EPSILON = 1e-3


@dataclass(frozen=True)
class R2Plus1D:
    """`clips [n, 3, time, height, width]` to pooled features, `8 · planes` of them."""

    layers: tuple[int, ...] = (3, 4, 6, 3)
    planes: int = 64
    stem: int = 45
    classes: int = 359

    def __call__(self, net: NetBuilder) -> Mapping[str, str]:
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
    """The width between space and time that keeps a 3×3×3 convolution's number of weights.

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
