"""DenseNet-161 (Huang et al. 2017): every layer sees all before it. Today's torchvision key names.

Checkpoints of 2017, such as the Places365 ones, write `norm.1` where today's say `norm1`; `modern` renames.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from wordreel.runtime.nets.checkpoint import Array
from wordreel.runtime.nets.net_builder import NetBuilder


@dataclass(frozen=True)
class DenseNet:
    """The network up to the pooled, rectified output of its last normalisation."""

    blocks: tuple[int, ...] = (6, 12, 36, 24)
    growth: int = 48
    start: int = 96
    bottleneck: int = 4
    classes: int = 1000

    def __call__(self, net: NetBuilder) -> Mapping[str, str]:
        x = net.input("frames", "n", 3, "height", "width")
        x = net.conv(x, "features.conv0", (self.start, 3, 7, 7), norm="features.norm0", stride=2, pad=3)
        x = net.pool("MaxPool", x, (3, 3), (2, 2), pad=1)
        width = self.start
        for block, layers in enumerate(self.blocks, 1):
            for layer in range(1, layers + 1):
                x = self._layer(net, f"features.denseblock{block}.denselayer{layer}", x, width)
                width += self.growth
            if block < len(self.blocks):
                key = f"features.transition{block}"
                x = net.norm(x, f"{key}.norm", width)
                x = net.conv(x, f"{key}.conv", (width // 2, width, 1, 1), relu=False)
                x = net.pool("AveragePool", x, (2, 2), (2, 2))
                width //= 2
        x = net.norm(x, "features.norm5", width)
        net.head("classifier", self.classes, width)
        return {"features": net.mean(x, 2, 3)}

    def _layer(self, net: NetBuilder, key: str, x: str, width: int) -> str:
        inner = self.bottleneck * self.growth
        y = net.norm(x, f"{key}.norm1", width)
        y = net.conv(y, f"{key}.conv1", (inner, width, 1, 1), norm=f"{key}.norm2")
        y = net.conv(y, f"{key}.conv2", (self.growth, inner, 3, 3), pad=1, relu=False)
        return net.op("Concat", x, y, axis=1)


DENSENET161_PLACES365 = DenseNet(classes=365)


def modern(state: Mapping[str, Array]) -> dict[str, Array]:
    """Rename `…denselayer3.norm.1.weight` to `…denselayer3.norm1.weight`; other keys stay.

    >>> import numpy as np
    >>> list(modern({"features.denseblock1.denselayer2.conv.1.weight": np.zeros(1)}))
    ['features.denseblock1.denselayer2.conv1.weight']
    """
    return {
        re.sub(r"(denselayer\d+\.(?:norm|conv))\.(\d)", r"\1\2", key): value for key, value in state.items()
    }
