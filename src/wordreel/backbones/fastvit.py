"""FastViT, the image tower of MobileCLIP and MobileCLIP 2, as it runs after reparameterisation.

A convolutional stem, then stages of blocks that mix positions by one depthwise convolution, and by attention
in the last stages (Vasu et al. 2023 and 2024). Key names are timm's, below `visual.trunk` as in open_clip.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from wordreel.backbones.transformer import attend, gelu
from wordreel.runtime.nets.net_builder import NetBuilder

AT = "visual.trunk"
HEAD_WIDTH = 32


@dataclass(frozen=True)
class FastViTVariant:
    """The shape of one published tower: per stage its depth, and its width from the first stage on.

    The last `attention_stages` attend and have convolutional positions; `squeezed` are the stages whose
    downsampling ends in squeeze-and-excitation. The attention is behind a layer norm or a batch norm.
    """

    depths: tuple[int, ...]
    width: int
    mlp_ratio: int
    attention_stages: int = 1
    squeezed: tuple[int, ...] = ()
    layer_norm: bool = False

    def widths(self) -> tuple[int, ...]:
        """The number of channels of each stage."""
        return tuple(self.width << stage for stage in range(len(self.depths)))


VARIANTS = {
    "mci0": FastViTVariant((2, 6, 10, 2), 64, 3, squeezed=(2, 3)),
    "mci1": FastViTVariant((4, 12, 20, 4), 64, 3, squeezed=(2, 3)),
    "mci2": FastViTVariant((4, 12, 24, 4), 80, 3, squeezed=(2, 3)),
    "mci3": FastViTVariant((2, 12, 24, 4, 2), 96, 4, attention_stages=2, layer_norm=True),
    "mci4": FastViTVariant((2, 12, 24, 4, 4), 128, 4, attention_stages=2, layer_norm=True),
}


@dataclass(frozen=True)
class FastViT:
    """`frames [n, 3, size, size]` to `features [n, dim]`, not normalised."""

    variant: FastViTVariant
    size: int
    dim: int

    def __call__(self, net: NetBuilder) -> Mapping[str, str]:
        variant, widths = self.variant, self.variant.widths()
        x = net.input("frames", "n", 3, self.size, self.size)
        x = self._stem(net, x, widths[0])
        side = -(-self.size // 4)
        for stage, (width, depth) in enumerate(zip(widths, variant.depths, strict=True)):
            key = f"{AT}.stages.{stage}"
            if stage > 0:
                x = self._downsample(net, x, f"{key}.downsample.proj", width, stage in variant.squeezed)
                side = -(-side // 2)
            attends = stage >= len(widths) - variant.attention_stages
            if attends:
                x = depthwise(net, x, f"{key}.pos_emb.reparam_conv", width, (7, 7))
            for block in range(depth):
                at = f"{key}.blocks.{block}"
                if attends:
                    x = self._attention_block(net, x, at, width, side)
                else:
                    x = mixer_block(net, x, at, width, variant.mlp_ratio * width, (3, 3), (7, 7))
        return {"features": self._head(net, x, widths[-1])}

    def _stem(self, net: NetBuilder, x: str, width: int) -> str:
        for layer, (into, kernel, stride) in enumerate(((3, 3, 2), (1, 3, 2), (width, 1, 1))):
            shape = (width, into, kernel, kernel)
            x = net.conv(
                x,
                f"{AT}.stem.{layer}.reparam_conv",
                shape,
                bias=True,
                relu=False,
                stride=stride,
                pad=kernel // 2,
                groups=width if into == 1 else 1,
            )
            x = gelu(net, x)
        return x

    def _downsample(self, net: NetBuilder, x: str, key: str, width: int, squeezed: bool) -> str:
        x = depthwise(net, x, f"{key}.0.reparam_conv", width, (7, 7), stride=2, groups=width // 2)
        if squeezed:
            x = squeeze_excite(net, x, f"{key}.0.se", width, _eighths(width // 4))
        x = net.conv(gelu(net, x), f"{key}.1.reparam_conv", (width, width, 1, 1), bias=True, relu=False)
        return gelu(net, x)

    def _attention_block(self, net: NetBuilder, x: str, key: str, width: int, side: int) -> str:
        tokens = net.op("Transpose", net.reshape(x, 0, width, -1), perm=[0, 2, 1])
        weight = net.tensor(f"{key}.token_mixer.qkv.weight", 3 * width, width)
        bias = np.zeros(3 * width, np.float32)
        if self.variant.layer_norm:
            tokens = net.layer_norm(tokens, f"{key}.norm", width, 1e-5)
        else:
            scale, shift = net.norm_factors(f"{key}.norm", width)
            weight, bias = weight * scale, weight @ shift
        q, k, v = (
            net.affine(tokens, weight[n : n + width], bias[n : n + width]) for n in width * np.arange(3)
        )
        y = attend(net, q, k, v, width // HEAD_WIDTH, width)
        gain = net.tensor(f"{key}.layer_scale_1.gamma", width, 1, 1).reshape(width)
        weight = net.tensor(f"{key}.token_mixer.proj.weight", width, width) * gain[:, None]
        y = net.affine(y, weight, net.tensor(f"{key}.token_mixer.proj.bias", width) * gain)
        y = net.reshape(net.op("Transpose", y, perm=[0, 2, 1]), 0, width, side, side)
        x = net.op("Add", x, y)
        return convolutional_mlp(
            net, x, key, width, self.variant.mlp_ratio * width, (7, 7), scale="layer_scale_2"
        )

    def _head(self, net: NetBuilder, x: str, width: int) -> str:
        wide = 2 * width
        x = depthwise(net, x, f"{AT}.final_conv.reparam_conv", wide, (3, 3), groups=width)
        x = gelu(net, squeeze_excite(net, x, f"{AT}.final_conv.se", wide, max(1, round(wide / 16))))
        return net.linear(net.mean(x, 2, 3), f"{AT}.head.fc", self.dim, wide)


def mixer_block(
    net: NetBuilder,
    x: str,
    key: str,
    width: int,
    mlp: int,
    kernel: tuple[int, int],
    mlp_kernel: tuple[int, int],
) -> str:
    """x ← convolution(x), then x ← x + γ · MLP(x); `[n, width, height, width of the map]` in and out."""
    x = depthwise(net, x, f"{key}.token_mixer.reparam_conv", width, kernel)
    return convolutional_mlp(net, x, key, width, mlp, mlp_kernel, scale="layer_scale")


def convolutional_mlp(
    net: NetBuilder, x: str, key: str, width: int, mlp: int, kernel: tuple[int, int], *, scale: str
) -> str:
    """x + γ · fc₂(GELU(fc₁(depthwise convolution(x)))), with γ folded into fc₂."""
    y = net.conv(
        x,
        f"{key}.mlp.conv.conv",
        (width, 1, *kernel),
        norm=f"{key}.mlp.conv.bn",
        relu=False,
        pad=[size // 2 for size in kernel],
        groups=width,
    )
    y = gelu(net, net.conv(y, f"{key}.mlp.fc1", (mlp, width, 1, 1), bias=True, relu=False))
    gain = net.tensor(f"{key}.{scale}.gamma", width, 1, 1)
    weight = net.tensor(f"{key}.mlp.fc2.weight", width, mlp, 1, 1) * gain[..., None]
    bias = net.tensor(f"{key}.mlp.fc2.bias", width) * gain.reshape(width)
    return net.op("Add", x, net.convolve(y, weight, bias))


def depthwise(
    net: NetBuilder,
    x: str,
    key: str,
    width: int,
    kernel: tuple[int, int],
    *,
    stride: int = 1,
    groups: int | None = None,
) -> str:
    """One kernel per channel, or several per channel where `groups` is less than `width`."""
    pad = [size // 2 for size in kernel]
    shape = (width, 1, *kernel)
    return net.conv(x, key, shape, bias=True, relu=False, stride=stride, pad=pad, groups=groups or width)


def squeeze_excite(net: NetBuilder, x: str, key: str, width: int, inner: int) -> str:
    """x · σ(fc₂(ReLU(fc₁(mean of x over the map))))."""
    y = net.mean(x, 2, 3, keep=True)
    y = net.conv(y, f"{key}.fc1", (inner, width, 1, 1), bias=True)
    y = net.conv(y, f"{key}.fc2", (width, inner, 1, 1), bias=True, relu=False)
    return net.op("Mul", x, net.op("Sigmoid", y))


def _eighths(channels: int) -> int:
    """The nearest multiple of 8, at least 8."""
    return max(8, (channels + 4) // 8 * 8)
