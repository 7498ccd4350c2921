"""SENet-154 (Hu et al. 2018): grouped bottlenecks with squeeze and excitation, under Cadène's key names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from wordreel.runtime.nets.net_builder import NetBuilder


@dataclass(frozen=True)
class SENet:
    """The network up to its pooled features, `4 · 8 · planes` of them."""

    layers: tuple[int, ...] = (3, 8, 36, 3)
    groups: int = 64
    reduction: int = 16
    planes: int = 64
    classes: int = 1000

    def __call__(self, net: NetBuilder) -> Mapping[str, str]:
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
            x = net.conv(
                x,
                f"{key}.downsample.0",
                (wide, into, side, side),
                norm=f"{key}.downsample.1",
                stride=stride,
                pad=side // 2,
                relu=False,
            )
        narrow = wide // self.reduction
        gate = net.mean(y, 2, 3, keep=True)
        gate = net.conv(gate, f"{key}.se_module.fc1", (narrow, wide, 1, 1), bias=True)
        gate = net.conv(gate, f"{key}.se_module.fc2", (wide, narrow, 1, 1), bias=True, relu=False)
        y = net.op("Mul", y, net.op("Sigmoid", gate))
        return net.op("Relu", net.op("Add", x, y))


SENET154 = SENet()
