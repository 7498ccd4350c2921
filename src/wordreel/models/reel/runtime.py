"""The default model in NumPy: tokens of the experts through a pre-norm transformer, read off the first token.

    x ← x + attention(LN x),   x ← x + W₂ gelu(W₁ LN x + b₁) + b₂,   out = unit(Wₒ x₀ + bₒ)

Tokens are `W_e token + b_e + kind_e`; the first one is learned. Padding takes no part in the attention. The
torch module that is trained is `lab/models/reel.py`; `models/reel/checkpoint.py` maps its names to these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from wordreel.lab.models.config import ReelConfig
from wordreel.types import Bool, Float32

Weights = Mapping[str, Float32]
Clips = Sequence[Mapping[str, Float32]]  # of each clip, scaled tokens `[n, dim]` by expert

ROW = "seen"  # the learned row of an embedding
EPSILON = 1e-5
_ERF = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)


def embed_videos(weights: Weights, config: ReelConfig, clips: Clips) -> Float32:
    """`[clips, dim]` unit vectors; zeros for a clip without tokens."""
    return unit(linear(weights, "out", first_tokens(weights, config, clips)))


def first_tokens(weights: Weights, config: ReelConfig, clips: Clips) -> Float32:
    """`[clips, dim]`: the first token after all layers, before the last matrix."""
    x, real = input_tokens(weights, config, clips)
    for number in range(config.layers):
        at = f"layers.{number}."
        x = x + _attention(weights, config.heads, at, _norm(weights, f"{at}norm1", x), real)
        wide = gelu(linear(weights, f"{at}linear1", _norm(weights, f"{at}norm2", x)))
        x = x + linear(weights, f"{at}linear2", wide)
    return np.asarray(x[:, 0], np.float32)


def input_tokens(weights: Weights, config: ReelConfig, clips: Clips) -> tuple[Float32, Bool]:
    """`[clips, 1 + most, dim]` tokens and which of them are real."""
    firsts, total = {}, 1
    for expert in config.experts:
        firsts[expert.name] = total
        total += expert.max_tokens
    kinds = weights["kinds"]
    x = np.zeros((len(clips), total, kinds.shape[1]), np.float32)
    real = np.zeros((len(clips), total), bool)
    x[:, 0], real[:, 0] = kinds[-1], True
    for number, expert in enumerate(config.experts):
        rows = [(i, clip[expert.name]) for i, clip in enumerate(clips) if expert.name in clip]
        if not rows:
            continue
        projected = linear(weights, f"into.{expert.name}", np.concatenate([row for _, row in rows]))
        start = 0
        for clip, row in rows:
            span = slice(firsts[expert.name], firsts[expert.name] + len(row))
            x[clip, span] = projected[start : start + len(row)] + kinds[number]
            real[clip, span] = True
            start += len(row)
    return x, real


def embed_sentences(weights: Weights, sentences: Float32, own: Float32 | None = None) -> Float32:
    """`[texts, dim]` unit vectors of sentence vectors: a linear part, a two-layer one, and what single words
    add in a model that was tuned (`own [texts, dim]`)."""
    x, deep = text_parts(weights, sentences)
    whole = linear(weights, "caption.straight", x) + deep
    return unit(whole if own is None else whole + own)


def text_parts(weights: Weights, sentences: Float32) -> tuple[Float32, Float32]:
    """`[texts, 384]`, the linear part's input, and `[texts, dim]`, the two-layer part's output."""
    x = _norm(weights, "caption.norm", sentences)
    return x, linear(weights, "caption.last", gelu(linear(weights, "caption.first", x)))


def unit(rows: Float32) -> Float32:
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-12), np.float32)


def _attention(weights: Weights, heads: int, at: str, x: Float32, real: Bool) -> Float32:
    clips, count, dim = x.shape
    both = x @ weights[f"{at}self_attn.in_proj_weight"].T + weights[f"{at}self_attn.in_proj_bias"]
    q, k, v = (part.reshape(clips, count, heads, -1).transpose(0, 2, 1, 3) for part in np.split(both, 3, -1))
    scores = q @ k.transpose(0, 1, 3, 2) / np.float32(np.sqrt(dim // heads))
    scores = np.where(real[:, None, None, :], scores, np.float32(-np.inf))
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


def gelu(x: Float32) -> Float32:
    """`x (1 + erf(x / √2)) / 2`, with the error function to 1.5e-7 (Abramowitz and Stegun 7.1.26)."""
    z = np.abs(x) * np.float32(np.sqrt(0.5))
    t = 1 / (1 + np.float32(0.3275911) * z)
    series = np.zeros_like(t)
    for factor in reversed(_ERF):
        series = (series + np.float32(factor)) * t
    erf = np.sign(x) * (1 - series * np.exp(-(z**2)))
    return np.asarray(x * (1 + erf) / 2, np.float32)
