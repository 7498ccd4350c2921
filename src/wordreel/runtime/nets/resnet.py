"""ResNet and ResNeXt (He et al. 2016, Xie et al. 2017), bottleneck blocks, under torchvision's keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from wordreel.runtime.nets.net_builder import NetBuilder


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
        return self.planes << (len(self.layers) + 1)

    def __call__(self, net: NetBuilder) -> Mapping[str, str]:
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
        y = net.conv(
            y,
            f"{key}.conv2",
            (width, width // self.groups, 3, 3),
            norm=f"{key}.bn2",
            stride=second,
            pad=1,
            groups=self.groups,
        )
        y = net.conv(y, f"{key}.conv3", (4 * planes, width, 1, 1), norm=f"{key}.bn3", relu=False)
        if widens:
            side = f"{key}.downsample"
            shape = (4 * planes, into, 1, 1)
            x = net.conv(x, f"{side}.0", shape, norm=f"{side}.1", stride=stride, relu=False)
        return net.op("Relu", net.op("Add", x, y))


RESNEXT101_32X48D = ResNet((3, 4, 23, 3), groups=32, group_width=48)
"""829 million parameters; its weights do not fit into one model file."""

VGGFACE2_RESNET50 = ResNet((3, 4, 6, 3), classes=8631, caffe=True)
