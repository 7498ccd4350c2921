"""Published networks over single pictures, up to their pooled features.

ResNet and ResNeXt (He et al. 2016, Xie et al. 2017) under torchvision's keys; SENet-154 (Hu et al. 2018)
under Cadène's; DenseNet-161 (Huang et al. 2017) under torchvision's of today: checkpoints of 2017, such as
those of Places365, write `norm.1` where today's say `norm1`, and `modern` renames.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from wordreel.runtime.nets.net_builder import NetBuilder
from wordreel.types import Array


@dataclass(frozen=True)
class ResNet:
    """A bottleneck residual network up to its pooled features, `8 · 4 · planes` of them.

    `caffe` is the original arrangement: the stride sits in the first 1×1 convolution of a block, and the
    first pooling has no padding and rounds up.
    """

    layers: tuple[int, ...]
    groups: int = 1
    group_width: int = 64
    planes: int = 64
    classes: int = 1000
    caffe: bool = False

    @property
    def dim(self) -> int:
        """Return the length of the features."""
        return self.planes << (len(self.layers) + 1)

    def __call__(self, net: NetBuilder) -> Mapping[str, str]:
        """Build the graph."""
        x = net.input("frames", "n", 3, "height", "width")
        x = net.conv(x, "conv1", (self.planes, 3, 7, 7), norm="bn1", stride=2, pad=3)
        edge = {"pad": 0, "ceil_mode": 1} if self.caffe else {"pad": 1}
        x = net.pool("MaxPool", x, (3, 3), (2, 2), **edge)
        into = self.planes
        for stage, blocks in enumerate(self.layers):
            planes = self.planes * 2**stage
            for block in range(blocks):
                stride = 2 if stage and not block else 1
                x = self._block(net, f"layer{stage + 1}.{block}", x, into, planes, stride, not block)
                into = 4 * planes
        net.head("fc", self.classes, into)
        return {"features": net.mean(x, 2, 3)}

    def _block(
        self, net: NetBuilder, key: str, x: str, into: int, planes: int, stride: int, widens: bool
    ) -> str:
        width = planes * self.group_width // 64 * self.groups
        first, second = (stride, 1) if self.caffe else (1, stride)
        y = net.conv(x, f"{key}.conv1", (width, into, 1, 1), norm=f"{key}.bn1", stride=first)
        shape = (width, width // self.groups, 3, 3)
        y = net.conv(y, f"{key}.conv2", shape, norm=f"{key}.bn2", stride=second, pad=1, groups=self.groups)
        y = net.conv(y, f"{key}.conv3", (4 * planes, width, 1, 1), norm=f"{key}.bn3", relu=False)
        if widens:
            side = f"{key}.downsample"
            shape = (4 * planes, into, 1, 1)
            x = net.conv(x, f"{side}.0", shape, norm=f"{side}.1", stride=stride, relu=False)
        return net.op("Relu", net.op("Add", x, y))


RESNEXT101_32X48D = ResNet((3, 4, 23, 3), groups=32, group_width=48)
"""829 million parameters; its weights do not fit into one model file."""

VGGFACE2_RESNET50 = ResNet((3, 4, 6, 3), classes=8631, caffe=True)


@dataclass(frozen=True)
class SENet:
    """The network up to its pooled features, `4 · 8 · planes` of them."""

    layers: tuple[int, ...] = (3, 8, 36, 3)
    groups: int = 64
    reduction: int = 16
    planes: int = 64
    classes: int = 1000

    def __call__(self, net: NetBuilder) -> Mapping[str, str]:
        """Build the graph."""
        thin = self.planes
        x = net.input("frames", "n", 3, "height", "width")
        stem = ((3, thin, 2), (thin, thin, 1), (thin, 2 * thin, 1))
        for number, (into, out, stride) in enumerate(stem, 1):
            key = f"layer0.conv{number}"
            x = net.conv(x, key, (out, into, 3, 3), norm=f"layer0.bn{number}", stride=stride, pad=1)
        x = net.pool("MaxPool", x, (3, 3), (2, 2), ceil_mode=1)
        into = 2 * thin
        for stage, blocks in enumerate(self.layers):
            planes = thin * 2**stage
            for block in range(blocks):
                stride = 2 if stage and not block else 1
                # Stages that halve the picture widen with a 3×3 convolution, the first one with 1×1.
                side = 0 if block else (3 if stage else 1)
                x = self._block(net, f"layer{stage + 1}.{block}", x, into, planes, stride, side)
                into = 4 * planes
        net.head("last_linear", self.classes, into)
        return {"features": net.mean(x, 2, 3)}

    def _block(
        self, net: NetBuilder, key: str, x: str, into: int, planes: int, stride: int, side: int
    ) -> str:
        wide = 4 * planes
        y = net.conv(x, f"{key}.conv1", (2 * planes, into, 1, 1), norm=f"{key}.bn1")
        shape = (wide, 2 * planes // self.groups, 3, 3)
        y = net.conv(y, f"{key}.conv2", shape, norm=f"{key}.bn2", stride=stride, pad=1, groups=self.groups)
        y = net.conv(y, f"{key}.conv3", (wide, wide, 1, 1), norm=f"{key}.bn3", relu=False)
        if side:
            end, shape = f"{key}.downsample", (wide, into, side, side)
            x = net.conv(x, f"{end}.0", shape, norm=f"{end}.1", stride=stride, pad=side // 2, relu=False)
        narrow = wide // self.reduction
        gate = net.mean(y, 2, 3, keep=True)
        gate = net.conv(gate, f"{key}.se_module.fc1", (narrow, wide, 1, 1), bias=True)
        gate = net.conv(gate, f"{key}.se_module.fc2", (wide, narrow, 1, 1), bias=True, relu=False)
        y = net.op("Mul", y, net.op("Sigmoid", gate))
        return net.op("Relu", net.op("Add", x, y))


SENET154 = SENet()


@dataclass(frozen=True)
class DenseNet:
    """The network up to the pooled, rectified output of its last normalisation."""

    blocks: tuple[int, ...] = (6, 12, 36, 24)
    growth: int = 48
    start: int = 96
    bottleneck: int = 4
    classes: int = 1000

    def __call__(self, net: NetBuilder) -> Mapping[str, str]:
        """Build the graph."""
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
