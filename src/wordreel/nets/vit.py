"""Vision transformers of joint picture-text models: the image towers of CLIP and SigLIP.

Key names are those of the `transformers` library, as on the hub: `vision_model.…`. Both are pre-norm
transformers; they differ in what stands before and after the blocks (Radford et al. 2021, Zhai et al. 2023).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from wordreel.nets.net_builder import NetBuilder

VISION = "vision_model"
Activation = Callable[[NetBuilder, str], str]


@dataclass(frozen=True)
class ClipVisionTower:
    """A class token, the quick GELU x·σ(1.702x), and a projection of the class token into the joint space."""

    patch: int = 32
    size: int = 224
    width: int = 768
    depth: int = 12
    heads: int = 12
    inner: int = 3072
    dim: int = 512

    def __call__(self, net: NetBuilder) -> Mapping[str, str]:
        x = net.input("frames", "n", 3, self.size, self.size)
        x = _patches(net, x, self.patch, self.width, bias=False)
        token = net.constant(net.tensor(f"{VISION}.embeddings.class_embedding", self.width))
        first = net.op("Slice", x, *(net.constant(np.array([n], np.int64)) for n in (0, 1, 1)))
        # A token per picture whatever their number: nothing of a patch, plus the token.
        first = net.op("Add", net.op("Mul", first, net.constant(np.float32(0.0))), token)
        x = _add_positions(
            net, net.op("Concat", first, x, axis=1), (self.size // self.patch) ** 2 + 1, self.width
        )
        x = net.layer_norm(x, f"{VISION}.pre_layrnorm", self.width, 1e-5)
        x = _blocks(net, x, self.depth, self.heads, self.width, self.inner, 1e-5, _quick_gelu)
        x = net.op("Gather", x, net.constant(np.int64(0)), axis=1)
        x = net.layer_norm(x, f"{VISION}.post_layernorm", self.width, 1e-5)
        return {"features": net.linear(x, "visual_projection", self.dim, self.width, bias=False)}


@dataclass(frozen=True)
class SiglipVisionTower:
    """No class token: a learnt query attends over the patches at the end. GELU in its tanh form, ε = 1e-6."""

    patch: int = 16
    size: int = 224
    width: int = 768
    depth: int = 12
    heads: int = 12
    inner: int = 3072

    def __call__(self, net: NetBuilder) -> Mapping[str, str]:
        x = net.input("frames", "n", 3, self.size, self.size)
        x = _patches(net, x, self.patch, self.width, bias=True)
        x = _add_positions(net, x, (self.size // self.patch) ** 2, self.width)
        x = _blocks(net, x, self.depth, self.heads, self.width, self.inner, 1e-6, _tanh_gelu)
        x = net.layer_norm(x, f"{VISION}.post_layernorm", self.width, 1e-6)
        return {"features": self._head(net, x)}

    def _head(self, net: NetBuilder, x: str) -> str:
        key, width = f"{VISION}.head", self.width
        probe = net.constant(net.tensor(f"{key}.probe", 1, 1, width))
        weight = net.tensor(f"{key}.attention.in_proj_weight", 3 * width, width)
        bias = net.tensor(f"{key}.attention.in_proj_bias", 3 * width)
        q, k, v = (
            net.op(
                "Add",
                net.op("MatMul", side, net.constant(weight[start : start + width].T)),
                net.constant(bias[start : start + width]),
            )
            for side, start in ((probe, 0), (x, width), (x, 2 * width))
        )
        y = _attend(net, q, k, v, self.heads, width)
        y = net.linear(y, f"{key}.attention.out_proj", width, width)
        z = net.layer_norm(y, f"{key}.layernorm", width, 1e-6)
        y = net.op("Add", y, _mlp(net, z, f"{key}.mlp", width, self.inner, _tanh_gelu))
        return net.reshape(y, -1, width)


def _patches(net: NetBuilder, x: str, patch: int, width: int, *, bias: bool) -> str:
    key = f"{VISION}.embeddings.patch_embedding"
    x = net.conv(x, key, (width, 3, patch, patch), bias=bias, stride=patch, relu=False)
    return net.op("Transpose", net.reshape(x, 0, width, -1), perm=[0, 2, 1])


def _add_positions(net: NetBuilder, x: str, count: int, width: int) -> str:
    positions = net.tensor(f"{VISION}.embeddings.position_embedding.weight", count, width)
    return net.op("Add", x, net.constant(positions))


def _blocks(
    net: NetBuilder, x: str, depth: int, heads: int, width: int, inner: int, epsilon: float, act: Activation
) -> str:
    for layer in range(depth):
        key = f"{VISION}.encoder.layers.{layer}"
        y = net.layer_norm(x, f"{key}.layer_norm1", width, epsilon)
        q, k, v = (net.linear(y, f"{key}.self_attn.{part}_proj", width, width) for part in "qkv")
        y = _attend(net, q, k, v, heads, width)
        x = net.op("Add", x, net.linear(y, f"{key}.self_attn.out_proj", width, width))
        y = net.layer_norm(x, f"{key}.layer_norm2", width, epsilon)
        x = net.op("Add", x, _mlp(net, y, f"{key}.mlp", width, inner, act))
    return x


def _attend(net: NetBuilder, q: str, k: str, v: str, heads: int, width: int) -> str:
    """softmax(q kᵀ / √(width / heads)) v, head by head; `[n, tokens, width]` in and out."""
    each = width // heads

    def split(x: str, *perm: int) -> str:
        return net.op("Transpose", net.reshape(x, 0, -1, heads, each), perm=list(perm))

    scaled = net.op("Mul", q, net.constant(np.float32(each**-0.5)))
    scores = net.op("MatMul", split(scaled, 0, 2, 1, 3), split(k, 0, 2, 3, 1))
    mixed = net.op("MatMul", net.op("Softmax", scores, axis=-1), split(v, 0, 2, 1, 3))
    return net.reshape(net.op("Transpose", mixed, perm=[0, 2, 1, 3]), 0, -1, width)


def _mlp(net: NetBuilder, x: str, key: str, width: int, inner: int, act: Activation) -> str:
    return net.linear(act(net, net.linear(x, f"{key}.fc1", inner, width)), f"{key}.fc2", width, inner)


def _quick_gelu(net: NetBuilder, x: str) -> str:
    return net.op("Mul", x, net.op("Sigmoid", net.op("Mul", x, net.constant(np.float32(1.702)))))


def _tanh_gelu(net: NetBuilder, x: str) -> str:
    """x / 2 · (1 + tanh(√(2/π) (x + 0.044715 x³)))."""
    cube = net.op("Mul", x, net.op("Mul", x, x))
    inside = net.op("Add", x, net.op("Mul", cube, net.constant(np.float32(0.044715))))
    bent = net.op("Tanh", net.op("Mul", inside, net.constant(np.float32(np.sqrt(2 / np.pi)))))
    half = net.op("Mul", x, net.constant(np.float32(0.5)))
    return net.op("Add", half, net.op("Mul", half, bent))


CLIP_B32 = ClipVisionTower()
CLIP_B16 = ClipVisionTower(patch=16)
SIGLIP_B16 = SiglipVisionTower()
