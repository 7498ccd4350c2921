"""The video side in NumPy: tokens of the experts through a pre-norm transformer, read off the first token.

    x ← x + attention(LN x),   x ← x + W₂ gelu(W₁ LN x + b₁) + b₂,   out = unit(Wₒ x₀ + bₒ)

Tokens are `W_e token + b_e + kind_e`; the first one is learned. Padding takes no part in the attention. The
weights have the names of the torch module that trains them (`training/reel/module.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from wordreel.models.reel.shape import EPSILON, HEADS, LAYERS, SEEN
from wordreel.types import Bool, Float32

Weights = Mapping[str, Float32]


def video(weights: Weights, clips: Sequence[Mapping[str, Float32]]) -> Float32:
    """`[clips, dim]` unit vectors from each clip's scaled tokens `[n, dim]` by expert; zeros for none."""
    return unit(linear(weights, "out", read(weights, clips)))


def read(weights: Weights, clips: Sequence[Mapping[str, Float32]]) -> Float32:
    """`[clips, dim]`: the first token after all layers, before the last matrix."""
    x, kept = tokens(weights, clips)
    for number in range(LAYERS):
        at = f"layers.{number}."
        x = x + _attention(weights, at, _norm(weights, f"{at}norm1", x), kept)
        wide = _gelu(linear(weights, f"{at}linear1", _norm(weights, f"{at}norm2", x)))
        x = x + linear(weights, f"{at}linear2", wide)
    return np.asarray(x[:, 0], np.float32)


def tokens(weights: Weights, clips: Sequence[Mapping[str, Float32]]) -> tuple[Float32, Bool]:
    """`[clips, 1 + most, dim]` tokens and which of them are there."""
    places, total = {}, 1
    for seen in SEEN:
        places[seen.name] = total
        total += seen.most
    kinds = weights["kinds"]
    x = np.zeros((len(clips), total, kinds.shape[1]), np.float32)
    kept = np.zeros((len(clips), total), bool)
    x[:, 0], kept[:, 0] = kinds[-1], True
    for number, seen in enumerate(SEEN):
        rows = [(i, clip[seen.name]) for i, clip in enumerate(clips) if seen.name in clip]
        if not rows:
            continue
        made = linear(weights, f"into.{seen.name}", np.concatenate([row for _, row in rows]))
        start = 0
        for clip, row in rows:
            span = slice(places[seen.name], places[seen.name] + len(row))
            x[clip, span] = made[start : start + len(row)] + kinds[number]
            kept[clip, span] = True
            start += len(row)
    return x, kept


def caption(weights: Weights, sentences: Float32, own: Float32 | None = None) -> Float32:
    """`[texts, dim]` unit vectors of sentence vectors: a straight part, a two-layer one, and what single
    words add in a model that was tuned (`own [texts, dim]`)."""
    x, deep = heard(weights, sentences)
    made = linear(weights, "caption.straight", x) + deep
    return unit(made if own is None else made + own)


def heard(weights: Weights, sentences: Float32) -> tuple[Float32, Float32]:
    """`[texts, 384]`, what the straight part multiplies, and `[texts, dim]`, what the other makes of it."""
    x = _norm(weights, "caption.norm", sentences)
    return x, linear(weights, "caption.last", _gelu(linear(weights, "caption.first", x)))


def unit(rows: Float32) -> Float32:
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-12), np.float32)


def _attention(weights: Weights, at: str, x: Float32, kept: Bool) -> Float32:
    clips, count, dim = x.shape
    both = x @ weights[f"{at}self_attn.in_proj_weight"].T + weights[f"{at}self_attn.in_proj_bias"]
    q, k, v = (part.reshape(clips, count, HEADS, -1).transpose(0, 2, 1, 3) for part in np.split(both, 3, -1))
    scores = q @ k.transpose(0, 1, 3, 2) / np.float32(np.sqrt(dim // HEADS))
    scores = np.where(kept[:, None, None, :], scores, np.float32(-np.inf))
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
    shares /= shares.sum(axis=-1, keepdims=True)
    mixed = (shares @ v).transpose(0, 2, 1, 3).reshape(clips, count, dim)
    return linear(weights, f"{at}self_attn.out_proj", mixed)


def _norm(weights: Weights, at: str, x: Float32) -> Float32:
    apart = x - x.mean(axis=-1, keepdims=True)
    scale = np.sqrt((apart**2).mean(axis=-1, keepdims=True) + np.float32(EPSILON))
    return np.asarray(apart / scale * weights[f"{at}.weight"] + weights[f"{at}.bias"], np.float32)


def linear(weights: Weights, at: str, x: Float32) -> Float32:
    return np.asarray(x @ weights[f"{at}.weight"].T + weights[f"{at}.bias"], np.float32)


def _gelu(x: Float32) -> Float32:
    """`x (1 + erf(x / √2)) / 2`, with the error function to 1.5e-7 (Abramowitz and Stegun 7.1.26)."""
    z = np.abs(x) * np.float32(np.sqrt(0.5))
    t = 1 / (1 + np.float32(0.3275911) * z)
    powers = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)
    series = np.zeros_like(t)
    for factor in reversed(powers):
        series = (series + np.float32(factor)) * t
    erf = np.sign(x) * (1 - series * np.exp(-(z**2)))
    return np.asarray(x * (1 + erf) / 2, np.float32)
