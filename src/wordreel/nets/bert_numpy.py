"""The network of `nets/bert.py` for one sentence, in NumPy, from the weights where they are in the file.

A program that encodes one query spends more on loading a graph than on running it: onnxruntime is imported,
and all weights are copied and packed. Here each matrix is read once, as it is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from wordreel.errors import WeightsCorrupt
from wordreel.nets.bert import EPSILON, HEADS
from wordreel.nets.onnx_arrays import MappedArray, map_arrays
from wordreel.types import Float32

ONE_THREAD = 2**18
"""Multiplications from which on OpenBLAS shares a product among threads, which wait longer than they work."""

BEFORE, PER_LAYER = 4, 16  # arrays before the layers (words, places, norm) and in each
_ERF = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)


class NumpyBert:
    """Encodes a sentence from its token ids."""

    def __init__(self, path: Path, heads: int = HEADS) -> None:
        self._heads = heads
        self._arrays = map_arrays(path)
        shapes = [array.shape for array in self._arrays[:BEFORE]]
        if (len(self._arrays) - BEFORE) % PER_LAYER or [len(shape) for shape in shapes] != [2, 2, 1, 1]:
            raise WeightsCorrupt(f"{path} is not laid out as a sentence encoder")

    def __call__(self, ids: Sequence[int]) -> Float32:
        """`[dim]`: the unit vector of the sentence."""
        arrays = iter(self._arrays)
        words, places = next(arrays), next(arrays)
        x = words.rows(list(ids)) + places.rows(list(range(len(ids))))
        x = _norm(x, next(arrays), next(arrays))
        scratch = np.empty(max(np.prod(array.shape) for array in self._arrays[BEFORE:]), np.float32)
        for _ in range((len(self._arrays) - BEFORE) // PER_LAYER):
            query, key, value = (_linear(x, next(arrays), next(arrays), scratch) for _ in range(3))
            mixed = _attention(query, key, value, self._heads)
            attended = _linear(mixed, next(arrays), next(arrays), scratch)
            x = _norm(x + attended, next(arrays), next(arrays))
            wide = gelu(_linear(x, next(arrays), next(arrays), scratch))
            narrow = _linear(wide, next(arrays), next(arrays), scratch)
            x = _norm(x + narrow, next(arrays), next(arrays))
        mean = x.mean(axis=0)
        return np.asarray(mean / max(float(np.linalg.norm(mean)), EPSILON), np.float32)


def _attention(query: Float32, key: Float32, value: Float32, heads: int) -> Float32:
    count, dim = query.shape
    q, k, v = (part.reshape(count, heads, -1).transpose(1, 0, 2) for part in (query, key, value))
    scores = q @ k.transpose(0, 2, 1) * np.float32(1 / np.sqrt(dim // heads))
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
    shares /= shares.sum(axis=-1, keepdims=True)
    return np.asarray((shares @ v).transpose(1, 0, 2).reshape(count, dim), np.float32)


def _linear(x: Float32, weight: MappedArray, bias: MappedArray, scratch: Float32) -> Float32:
    matrix = weight.copy(scratch)  # the file holds Wᵀ
    out = np.empty((len(x), matrix.shape[1]), np.float32)
    step = max(1, ONE_THREAD // x.size)
    for start in range(0, matrix.shape[1], step):
        out[:, start : start + step] = x @ matrix[:, start : start + step]
    return out + bias.copy()


def _norm(x: Float32, scale: MappedArray, shift: MappedArray) -> Float32:
    apart = x - x.mean(axis=-1, keepdims=True)
    deviation = np.sqrt((apart**2).mean(axis=-1, keepdims=True) + np.float32(EPSILON))
    return np.asarray(apart / deviation * scale.copy() + shift.copy(), np.float32)


def gelu(x: Float32) -> Float32:
    """`x (1 + erf(x / √2)) / 2`, with the error function to 1.5e-7 (Abramowitz and Stegun 7.1.26)."""
    z = np.abs(x) * np.float32(np.sqrt(0.5))
    t = 1 / (1 + np.float32(0.3275911) * z)
    series = np.zeros_like(t)
    for factor in reversed(_ERF):
        series = (series + np.float32(factor)) * t
    erf = np.sign(x) * (1 - series * np.exp(-(z**2)))
    return np.asarray(x * (1 + erf) / 2, np.float32)
