"""Image towers of joint picture-text models: one vision transformer, read from its configuration.

CLIP (Radford et al. 2021) puts a class token before the patches and projects it; SigLIP (Zhai et al. 2023)
has none and lets a learnt query attend over the patches at the end; PE-Core (Bolya et al. 2025) has a class
token, such a query, a projection, and rotary positions in every block; MobileCLIP-B (Vasu et al. 2024) makes
patches with three convolutions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from wordreel.backbones.config import VisionTowerConfig
from wordreel.backbones.rotary import Rotary
from wordreel.backbones.transformer import attend, blocks, gelu, mlp
from wordreel.runtime.nets.net_builder import NetBuilder

AT = "vision_model"
STEM = "visual.trunk.patch_embed.backbone"  # of MobileCLIP-B, with timm's names


@dataclass(frozen=True)
class VisionTransformer:
    """`frames [n, 3, size, size]` to `features [n, dim]`, not normalised."""

    config: VisionTowerConfig
    dim: int

    def __call__(self, net: NetBuilder) -> Mapping[str, str]:
        config, width = self.config, self.config.width
        x = net.input("frames", "n", 3, config.size, config.size)
        x = self._embed(net, x)
        if config.pre_norm:
            x = net.layer_norm(x, f"{AT}.pre_layrnorm", width, config.epsilon)  # spelt as published
        x = blocks(net, x, AT, config, rotate=Rotary(config) if config.rotary else None)
        if config.pooling == "class":
            x = net.op("Gather", x, net.constant(np.int64(0)), axis=1)
        x = net.layer_norm(x, f"{AT}.post_layernorm", width, config.epsilon)
        if config.pooling == "attention":
            x = self._attention_pool(net, x)
        if config.projection:
            x = net.linear(x, "visual_projection", self.dim, width, bias=config.projection_bias)
        return {"features": x}

    def _embed(self, net: NetBuilder, x: str) -> str:
        config, width, key = self.config, self.config.width, f"{AT}.embeddings"
        if config.convolutional_stem:
            x = self._stem(net, x)
        else:
            shape = (width, 3, config.patch, config.patch)
            x = net.conv(
                x, f"{key}.patch_embedding", shape, bias=config.patch_bias, stride=config.patch, relu=False
            )
        x = net.op("Transpose", net.reshape(x, 0, width, -1), perm=[0, 2, 1])
        tokens = (config.size // config.patch) ** 2
        placed = config.class_token and not config.convolutional_stem
        positions = net.tensor(f"{key}.position_embedding.weight", tokens + placed, width)
        if not placed:
            x = net.op("Add", x, net.constant(positions))
        if config.class_token:
            token = net.constant(net.tensor(f"{key}.class_embedding", width))
            first = net.op("Slice", x, *(net.constant(np.array([n], np.int64)) for n in (0, 1, 1)))
            # A token per picture whatever their number: nothing of a patch, plus the token.
            first = net.op("Add", net.op("Mul", first, net.constant(np.float32(0.0))), token)
            x = net.op("Concat", first, x, axis=1)
        return net.op("Add", x, net.constant(positions)) if placed else x

    def _stem(self, net: NetBuilder, x: str) -> str:
        """Convolutions of 4, 2 and 2 pixels without overlap, a batch norm and a GELU between them."""
        width, into = self.config.width, 3
        for layer, (out, kernel) in enumerate(((width // 4, 4), (width // 4, 2), (width, 2))):
            key, last = f"{STEM}.{layer}", layer == 2
            shape = (out, into, kernel, kernel)
            norm = None if last else f"{key}.bn"
            x = net.conv(x, f"{key}.conv", shape, norm=norm, bias=last, relu=False, stride=kernel)
            x, into = x if last else gelu(net, x), out
        return x

    def _attention_pool(self, net: NetBuilder, x: str) -> str:
        """`[n, tokens, width]` to `[n, width]`: a learnt query attends over all tokens, then an MLP."""
        key, config, width = f"{AT}.head", self.config, self.config.width
        probe = net.constant(net.tensor(f"{key}.probe", 1, 1, width))
        weight = net.tensor(f"{key}.attention.in_proj_weight", 3 * width, width)
        bias = net.tensor(f"{key}.attention.in_proj_bias", 3 * width)
        q, k, v = (
            net.affine(side, weight[start : start + width], bias[start : start + width])
            for side, start in ((probe, 0), (x, width), (x, 2 * width))
        )
        y = attend(net, q, k, v, config.pool_heads or config.heads, width)
        y = net.linear(y, f"{key}.attention.out_proj", width, width)
        z = net.layer_norm(y, f"{key}.layernorm", width, config.epsilon)
        z = mlp(net, z, f"{key}.mlp", config, config.pool_mlp or config.mlp)
        return net.reshape(net.op("Add", y, z), -1, width)
