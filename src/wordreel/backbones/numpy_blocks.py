"""CLIP's transformer blocks over a few tokens, in NumPy: small enough that a graph would not pay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from wordreel.runtime.nets.checkpoint import Shape
from wordreel.types import Bool, Float32

Weights = Mapping[str, Float32]
EPSILON = 1e-12  # of the norms of blocks over frames, as published


def block_shapes(dim: int) -> dict[str, Shape]:
    """The weights of a block."""
    linears = {"attn.out_proj": (dim, dim), "mlp.c_fc": (4 * dim, dim), "mlp.c_proj": (dim, 4 * dim)}
    shapes: dict[str, Shape] = {"attn.in_proj_weight": (3 * dim, dim), "attn.in_proj_bias": (3 * dim,)}
    for name, shape in linears.items():
        shapes |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
    for norm in ("ln_1", "ln_2"):
        shapes |= {f"{norm}.weight": (dim,), f"{norm}.bias": (dim,)}
    return shapes


@dataclass(frozen=True)
class Blocks:
    """Blocks with their weights by OpenAI's names, and the heads that attention has."""

    weights: Weights
    heads: int

    def __call__(self, at: str, layers: int, x: Float32, real: Bool) -> Float32:
        """The blocks `at.0`, `at.1`, … over tokens `[n, count, dim]`, of which `real [n, count]` are seen."""
        for layer in range(layers):
            one = f"{at}.{layer}"
            x = x + self.attention(f"{one}.attn", self.norm(f"{one}.ln_1", x), real)
            wide = self.linear(f"{one}.mlp.c_fc", self.norm(f"{one}.ln_2", x))
            x = x + self.linear(f"{one}.mlp.c_proj", wide * sigmoid(np.float32(1.702) * wide))
        return x

    def attention(self, at: str, x: Float32, real: Bool) -> Float32:
        clips, count, dim = x.shape
        both = product(x, self.weights[f"{at}.in_proj_weight"]) + self.weights[f"{at}.in_proj_bias"]
        three = both.reshape(clips, count, 3, self.heads, -1).transpose(2, 0, 3, 1, 4)
        scores = three[0] @ three[1].swapaxes(-1, -2) / np.float32(np.sqrt(dim // self.heads))
        scores = np.where(real[:, None, None], scores, np.float32(-1e6))
        mixed = softmax(scores) @ three[2]
        return self.linear(f"{at}.out_proj", mixed.swapaxes(1, 2).reshape(clips, count, dim))

    def norm(self, at: str, x: Float32, epsilon: float = EPSILON) -> Float32:
        apart = x - x.mean(axis=-1, keepdims=True)
        scale = np.sqrt((apart**2).mean(axis=-1, keepdims=True) + np.float32(epsilon))
        scaled = apart / scale * self.weights[f"{at}.weight"] + self.weights[f"{at}.bias"]
        return np.asarray(scaled, np.float32)

    def linear(self, at: str, x: Float32) -> Float32:
        return np.asarray(product(x, self.weights[f"{at}.weight"]) + self.weights[f"{at}.bias"], np.float32)


def product(x: Float32, weight: Float32) -> Float32:
    """x Wᵀ over the last axis, as one matrix product: NumPy makes many small ones of three axes."""
    rows = x.reshape(-1, x.shape[-1]) @ weight.T
    return np.asarray(rows.reshape(*x.shape[:-1], -1), np.float32)


def sigmoid(x: Float32) -> Float32:
    return np.asarray(1 / (1 + np.exp(-x)), np.float32)


def softmax(x: Float32) -> Float32:
    """Over the last axis."""
    shares = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=-1, keepdims=True), np.float32)


def unit(x: Float32) -> Float32:
    return np.asarray(x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-12), np.float32)


def mean_of_units(frames: Float32, real: Bool) -> Float32:
    """Unit vectors `[n, dim]`: the mean of the real frames at unit length."""
    units = np.where(real[:, :, None], unit(frames), np.float32(0))
    return unit(units.sum(axis=1) / real.sum(axis=1)[:, None])
