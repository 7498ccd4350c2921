"""Two-dimensional rotary positions (Su et al. 2021) of queries and keys, as in the Perception Encoder.

The numbers of a head come in pairs `(a, b)`, turned by the angle p · f to `(a cos − b sin, b cos + a sin)`.
The first half of the pairs turns by the column, the second by the row; a head of width w has the frequencies
f = 10000^(−4i / w) for i = 0 … w / 4 − 1. With a class token, which is not turned, rows and columns count
from 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wordreel.backbones.config import VisionTowerConfig
from wordreel.runtime.nets.net_builder import NetBuilder

BASE = 10_000.0


def angles(config: VisionTowerConfig) -> NDArray[np.float64]:
    """`[tokens, width / heads / 2]`, one angle per pair."""
    each, side = config.width // config.heads, config.size // config.patch
    frequencies = BASE ** (-np.arange(each // 4) / (each // 4))
    places = np.arange(side) + int(config.class_token)
    rows, columns = np.meshgrid(places, places, indexing="ij")
    turns = np.concatenate([place.reshape(-1, 1) * frequencies for place in (columns, rows)], axis=1)
    return np.concatenate([np.zeros((1, each // 2)), turns]) if config.class_token else turns


class Rotary:
    """Turns `[n, heads, tokens, width / heads]` by the positions of the tokens."""

    def __init__(self, config: VisionTowerConfig) -> None:
        self._angles = angles(config)

    def __call__(self, net: NetBuilder, x: str) -> str:
        tokens, pairs = self._angles.shape
        cosines, sines = (
            net.constant(function(self._angles).astype(np.float32)[:, :, None])
            for function in (np.cos, np.sin)
        )
        paired = net.reshape(x, 0, 0, tokens, pairs, 2)
        swapped = net.op("Gather", paired, net.constant(np.array([1, 0])), axis=4)
        signed = net.op("Mul", swapped, net.constant(np.array([-1.0, 1.0], np.float32)))
        turned = net.op("Add", net.op("Mul", paired, cosines), net.op("Mul", signed, sines))
        return net.reshape(turned, 0, 0, tokens, 2 * pairs)
