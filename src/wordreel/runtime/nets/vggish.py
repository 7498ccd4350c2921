"""VGGish (Hershey et al. 2017): a small VGG over log-mel patches, under torchvggish's key names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from wordreel.runtime.nets.net_builder import NetBuilder


@dataclass(frozen=True)
class VGGish:
    """`patches [n, 1, 96, 64]` (time, mel band) to 128 numbers, rectified as in the release.

    `layers` are widths by their index in the published sequence; a 2×2 pooling follows 0, 3, 8 and 13.
    """

    layers: tuple[tuple[int, int], ...] = ((0, 64), (3, 128), (6, 256), (8, 256), (11, 512), (13, 512))
    hidden: int = 4096
    dim: int = 128
    patch: tuple[int, int] = (96, 64)

    def __call__(self, net: NetBuilder) -> Mapping[str, str]:
        x = net.input("patches", "n", 1, *self.patch)
        into = 1
        for index, out in self.layers:
            x = net.conv(x, f"features.{index}", (out, into, 3, 3), bias=True, pad=1)
            if index in (0, 3, 8, 13):
                x = net.pool("MaxPool", x, (2, 2), (2, 2))
            into = out
        # The first fully connected layer was trained on channels-last maps.
        x = net.reshape(net.op("Transpose", x, perm=[0, 2, 3, 1]), 0, -1)
        into *= self.patch[0] * self.patch[1] // 256
        for index, out in ((0, self.hidden), (2, self.hidden), (4, self.dim)):
            x = net.op("Relu", net.linear(x, f"embeddings.{index}", out, into))
            into = out
        return {"features": x}


VGGISH = VGGish()
