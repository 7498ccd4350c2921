"""Vision transformers of joint picture-text models: the image towers of CLIP and SigLIP.

Key names are those of the `transformers` library, as on the hub: `vision_model.…`. Both are pre-norm
transformers; they differ in what stands before and after the blocks (Radford et al. 2021, Zhai et al. 2023).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from wordreel.nets.wiring import Wiring

VISION = "vision_model"
Activation = Callable[[Wiring, str], str]


@dataclass(frozen=True)
class Clip:
    """A class token, the quick GELU x·σ(1.702x), and a projection of the class token into the joint space."""

    patch: int = 32
    size: int = 224
    width: int = 768
    depth: int = 12
    heads: int = 12
    inner: int = 3072
    dim: int = 512

    def __call__(self, wiring: Wiring) -> Mapping[str, str]:
        x = wiring.input("frames", "n", 3, self.size, self.size)
        x = _patches(wiring, x, self.patch, self.width, bias=False)
        token = wiring.constant(wiring.tensor(f"{VISION}.embeddings.class_embedding", self.width))
        first = wiring.op("Slice", x, *(wiring.constant(np.array([n], np.int64)) for n in (0, 1, 1)))
        # A token per picture whatever their number: nothing of a patch, plus the token.
        first = wiring.op("Add", wiring.op("Mul", first, wiring.constant(np.float32(0.0))), token)
        x = _places(
            wiring, wiring.op("Concat", first, x, axis=1), (self.size // self.patch) ** 2 + 1, self.width
        )
        x = wiring.layer_norm(x, f"{VISION}.pre_layrnorm", self.width, 1e-5)
        x = _blocks(wiring, x, self.depth, self.heads, self.width, self.inner, 1e-5, _quick_gelu)
        x = wiring.op("Gather", x, wiring.constant(np.int64(0)), axis=1)
        x = wiring.layer_norm(x, f"{VISION}.post_layernorm", self.width, 1e-5)
        return {"features": wiring.linear(x, "visual_projection", self.dim, self.width, bias=False)}


@dataclass(frozen=True)
class Siglip:
    """No class token: a learnt query attends over the patches at the end. GELU in its tanh form, ε = 1e-6."""

    patch: int = 16
    size: int = 224
    width: int = 768
    depth: int = 12
    heads: int = 12
    inner: int = 3072

    def __call__(self, wiring: Wiring) -> Mapping[str, str]:
        x = wiring.input("frames", "n", 3, self.size, self.size)
        x = _patches(wiring, x, self.patch, self.width, bias=True)
        x = _places(wiring, x, (self.size // self.patch) ** 2, self.width)
        x = _blocks(wiring, x, self.depth, self.heads, self.width, self.inner, 1e-6, _tanh_gelu)
        x = wiring.layer_norm(x, f"{VISION}.post_layernorm", self.width, 1e-6)
        return {"features": self._head(wiring, x)}

    def _head(self, wiring: Wiring, x: str) -> str:
        key, width = f"{VISION}.head", self.width
        probe = wiring.constant(wiring.tensor(f"{key}.probe", 1, 1, width))
        weight = wiring.tensor(f"{key}.attention.in_proj_weight", 3 * width, width)
        bias = wiring.tensor(f"{key}.attention.in_proj_bias", 3 * width)
        q, k, v = (
            wiring.op(
                "Add",
                wiring.op("MatMul", side, wiring.constant(weight[start : start + width].T)),
                wiring.constant(bias[start : start + width]),
            )
            for side, start in ((probe, 0), (x, width), (x, 2 * width))
        )
        y = _attend(wiring, q, k, v, self.heads, width)
        y = wiring.linear(y, f"{key}.attention.out_proj", width, width)
        z = wiring.layer_norm(y, f"{key}.layernorm", width, 1e-6)
        y = wiring.op("Add", y, _mlp(wiring, z, f"{key}.mlp", width, self.inner, _tanh_gelu))
        return wiring.reshape(y, -1, width)


def _patches(wiring: Wiring, x: str, patch: int, width: int, *, bias: bool) -> str:
    key = f"{VISION}.embeddings.patch_embedding"
    x = wiring.conv(x, key, (width, 3, patch, patch), bias=bias, stride=patch, relu=False)
    return wiring.op("Transpose", wiring.reshape(x, 0, width, -1), perm=[0, 2, 1])


def _places(wiring: Wiring, x: str, count: int, width: int) -> str:
    places = wiring.tensor(f"{VISION}.embeddings.position_embedding.weight", count, width)
    return wiring.op("Add", x, wiring.constant(places))


def _blocks(
    wiring: Wiring, x: str, depth: int, heads: int, width: int, inner: int, epsilon: float, act: Activation
) -> str:
    for layer in range(depth):
        key = f"{VISION}.encoder.layers.{layer}"
        y = wiring.layer_norm(x, f"{key}.layer_norm1", width, epsilon)
        q, k, v = (wiring.linear(y, f"{key}.self_attn.{part}_proj", width, width) for part in "qkv")
        y = _attend(wiring, q, k, v, heads, width)
        x = wiring.op("Add", x, wiring.linear(y, f"{key}.self_attn.out_proj", width, width))
        y = wiring.layer_norm(x, f"{key}.layer_norm2", width, epsilon)
        x = wiring.op("Add", x, _mlp(wiring, y, f"{key}.mlp", width, inner, act))
    return x


def _attend(wiring: Wiring, q: str, k: str, v: str, heads: int, width: int) -> str:
    """softmax(q kᵀ / √(width / heads)) v, head by head; `[n, tokens, width]` in and out."""
    each = width // heads

    def split(x: str, *perm: int) -> str:
        return wiring.op("Transpose", wiring.reshape(x, 0, -1, heads, each), perm=list(perm))

    scaled = wiring.op("Mul", q, wiring.constant(np.float32(each**-0.5)))
    scores = wiring.op("MatMul", split(scaled, 0, 2, 1, 3), split(k, 0, 2, 3, 1))
    mixed = wiring.op("MatMul", wiring.op("Softmax", scores, axis=-1), split(v, 0, 2, 1, 3))
    return wiring.reshape(wiring.op("Transpose", mixed, perm=[0, 2, 1, 3]), 0, -1, width)


def _mlp(wiring: Wiring, x: str, key: str, width: int, inner: int, act: Activation) -> str:
    return wiring.linear(
        act(wiring, wiring.linear(x, f"{key}.fc1", inner, width)), f"{key}.fc2", width, inner
    )


def _quick_gelu(wiring: Wiring, x: str) -> str:
    return wiring.op("Mul", x, wiring.op("Sigmoid", wiring.op("Mul", x, wiring.constant(np.float32(1.702)))))


def _tanh_gelu(wiring: Wiring, x: str) -> str:
    """x / 2 · (1 + tanh(√(2/π) (x + 0.044715 x³)))."""
    cube = wiring.op("Mul", x, wiring.op("Mul", x, x))
    inside = wiring.op("Add", x, wiring.op("Mul", cube, wiring.constant(np.float32(0.044715))))
    bent = wiring.op("Tanh", wiring.op("Mul", inside, wiring.constant(np.float32(np.sqrt(2 / np.pi)))))
    half = wiring.op("Mul", x, wiring.constant(np.float32(0.5)))
    return wiring.op("Add", half, wiring.op("Mul", half, bent))


CLIP_B32 = Clip()
CLIP_B16 = Clip(patch=16)
SIGLIP_B16 = Siglip()
