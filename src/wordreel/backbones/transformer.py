"""The pre-norm transformer that the image and text towers share, with the key names of `transformers`.

Each block is `x ← x + attention(LN₁ x)`, then `x ← x + MLP(LN₂ x)` (Radford et al. 2021, section 2.4).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import numpy as np

from wordreel.backbones.config import Activation
from wordreel.runtime.nets.net_builder import NetBuilder

Rotation = Callable[[NetBuilder, str], str]
"""Turns queries or keys `[n, heads, tokens, width / heads]` by their position."""


class BlocksConfig(Protocol):
    """What both towers' configurations say of their blocks."""

    @property
    def width(self) -> int: ...
    @property
    def depth(self) -> int: ...
    @property
    def heads(self) -> int: ...
    @property
    def mlp(self) -> int: ...
    @property
    def activation(self) -> Activation: ...
    @property
    def epsilon(self) -> float: ...


def blocks(
    net: NetBuilder,
    x: str,
    at: str,
    config: BlocksConfig,
    *,
    mask: str = "",
    rotate: Rotation | None = None,
) -> str:
    """All blocks under `at.encoder.layers`; `mask` is added to the attention logits."""
    width, epsilon = config.width, config.epsilon
    for layer in range(config.depth):
        key = f"{at}.encoder.layers.{layer}"
        y = net.layer_norm(x, f"{key}.layer_norm1", width, epsilon)
        q, k, v = net.linears(y, [f"{key}.self_attn.{part}_proj" for part in "qkv"], width, width)
        y = attend(net, q, k, v, config.heads, width, mask=mask, rotate=rotate)
        x = net.op("Add", x, net.linear(y, f"{key}.self_attn.out_proj", width, width))
        y = net.layer_norm(x, f"{key}.layer_norm2", width, epsilon)
        x = net.op("Add", x, mlp(net, y, f"{key}.mlp", config, config.mlp))
    return x


def attend(
    net: NetBuilder,
    q: str,
    k: str,
    v: str,
    heads: int,
    width: int,
    *,
    mask: str = "",
    rotate: Rotation | None = None,
) -> str:
    """softmax(q kᵀ / √(width / heads) + mask) v, head by head; `[n, tokens, width]` in and out."""
    each = width // heads

    def split(x: str) -> str:
        return net.op("Transpose", net.reshape(x, 0, -1, heads, each), perm=[0, 2, 1, 3])

    q, k, v = split(net.op("Mul", q, net.constant(np.float32(each**-0.5)))), split(k), split(v)
    if rotate is not None:
        q, k = rotate(net, q), rotate(net, k)
    scores = net.op("MatMul", q, net.op("Transpose", k, perm=[0, 1, 3, 2]))
    if mask:
        scores = net.op("Add", scores, mask)
    mixed = net.op("MatMul", net.op("Softmax", scores, axis=-1), v)
    return net.reshape(net.op("Transpose", mixed, perm=[0, 2, 1, 3]), 0, -1, width)


def mlp(net: NetBuilder, x: str, key: str, config: BlocksConfig, inner: int) -> str:
    """Two linear layers with the activation between them."""
    x = net.linear(x, f"{key}.fc1", inner, config.width)
    return net.linear(ACTIVATIONS[config.activation](net, x), f"{key}.fc2", config.width, inner)


def quick_gelu(net: NetBuilder, x: str) -> str:
    """x · σ(1.702 x), as OpenAI's CLIP has it."""
    return net.op("Mul", x, net.op("Sigmoid", net.op("Mul", x, net.constant(np.float32(1.702)))))


def gelu(net: NetBuilder, x: str) -> str:
    """x · (1 + erf(x / √2)) / 2, in the order that the runtime fuses into one operator."""
    erf = net.op("Erf", net.op("Div", x, net.constant(np.float32(np.sqrt(2.0)))))
    twice = net.op("Mul", x, net.op("Add", erf, net.constant(np.float32(1.0))))
    return net.op("Mul", twice, net.constant(np.float32(0.5)))


def gelu_tanh(net: NetBuilder, x: str) -> str:
    """x / 2 · (1 + tanh(√(2/π) (x + 0.044715 x³)))"""
    cube = net.op("Mul", x, net.op("Mul", x, x))
    inside = net.op("Add", x, net.op("Mul", cube, net.constant(np.float32(0.044715))))
    bent = net.op("Tanh", net.op("Mul", inside, net.constant(np.float32(np.sqrt(2 / np.pi)))))
    half = net.op("Mul", x, net.constant(np.float32(0.5)))
    return net.op("Add", half, net.op("Mul", half, bent))


ACTIVATIONS: Mapping[Activation, Callable[[NetBuilder, str], str]] = {
    "quick_gelu": quick_gelu,
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
}
