"""EfficientNet-Lite as a torch module that can be trained, under the published names.

The same network as `runtime.nets.efficientnet_lite` builds for inference: a state dict of this module is
what that converter reads, so whatever is trained here runs there.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from wordreel.runtime.nets.efficientnet_lite import CLASSES, EPSILON, FEATURES, HALVING, LITE2, STEM

MOMENTUM = 0.01  # of the batch norms, as published


class EfficientNetLite(nn.Module):
    """`pixels [n, 3, h, w]` in [−1, 1] to `features [n, 1280]`.

    `classes` computes ImageNet's logits from the features.
    """

    def __init__(
        self,
        stages: Sequence[tuple[int, int, int, int]] = LITE2,
        *,
        stem: int = STEM,
        features: int = FEATURES,
        classes: int = CLASSES,
        halving: Collection[int] = HALVING,
        checkpointed: bool = False,
    ) -> None:
        super().__init__()
        self.checkpointed = checkpointed
        self._conv_stem = SameConv2d(3, stem, 3, stride=2)
        self._bn0 = _norm(stem)
        blocks: list[nn.Module] = []
        width = stem
        for count, kernel, out, expansion in stages:
            for _ in range(count):
                stride = 2 if len(blocks) in halving else 1
                blocks.append(InvertedBottleneck(width, out, kernel, expansion, stride))
                width = out
        self._blocks = nn.ModuleList(blocks)
        self._conv_head = SameConv2d(width, features, 1)
        self._bn1 = _norm(features)
        self._fc = nn.Linear(features, classes)

    def forward(self, pixels: Tensor) -> Tensor:
        x = F.relu6(self._bn0(self._conv_stem(pixels)))
        for block in self._blocks:
            if self.checkpointed and torch.is_grad_enabled():
                x = checkpoint(block, x, use_reentrant=False)
            else:
                x = block(x)
        return F.relu6(self._bn1(self._conv_head(x))).mean(dim=(2, 3))

    def classes(self, features: Tensor) -> Tensor:
        """`[n, 1280]` to logits `[n, 1000]`."""
        logits: Tensor = self._fc(features)
        return logits


class InvertedBottleneck(nn.Module):
    """An inverted bottleneck; the input is added where the shape stays."""

    def __init__(self, width: int, out: int, kernel: int, expansion: int, stride: int) -> None:
        super().__init__()
        inner = width * expansion
        if expansion > 1:
            self._expand_conv = SameConv2d(width, inner, 1)
            self._bn0 = _norm(inner)
        self.expands = expansion > 1
        self._depthwise_conv = SameConv2d(inner, inner, kernel, stride=stride, groups=inner)
        self._bn1 = _norm(inner)
        self._project_conv = SameConv2d(inner, out, 1)
        self._bn2 = _norm(out)
        self.residual = stride == 1 and width == out

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu6(self._bn0(self._expand_conv(x))) if self.expands else x
        y = F.relu6(self._bn1(self._depthwise_conv(y)))
        y = self._bn2(self._project_conv(y))
        out: Tensor = x + y if self.residual else y
        return out


class SameConv2d(nn.Conv2d):
    """A convolution with TensorFlow's "SAME" padding: the odd pixel goes to the right and the bottom."""

    def __init__(self, width: int, out: int, kernel: int, *, stride: int = 1, groups: int = 1) -> None:
        super().__init__(width, out, kernel, stride=stride, groups=groups, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        kernel, stride = self.kernel_size[0], self.stride[0]
        rows, columns = (_same(size, kernel, stride) for size in x.shape[2:])
        if rows == columns and rows[0] == rows[1]:
            return F.conv2d(x, self.weight, None, stride, rows[0], 1, self.groups)
        return F.conv2d(F.pad(x, (*columns, *rows)), self.weight, None, stride, 0, 1, self.groups)


def _same(size: int, kernel: int, stride: int) -> tuple[int, int]:
    """Pixels of padding before and after."""
    total = max((-(-size // stride) - 1) * stride + kernel - size, 0)
    return total // 2, total - total // 2


def _norm(width: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(width, eps=EPSILON, momentum=MOMENTUM)
