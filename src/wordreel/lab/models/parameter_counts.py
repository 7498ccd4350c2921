"""How many parameters a configuration has, part by part, by formula: no torch, no weights, no time.

Linear(i → o) has i·o + o; batch norm 2d; NetVLAD(D, K, G) D(K+G) + 2(K+G) + DK; context gating d² + d + 2d.
Parameters that a published model carries without using them (poolers, mixture weights of an ablation) count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from wordreel.lab.models.config import (
    CEConfig,
    ConcatConfig,
    ExpertConfig,
    MMTConfig,
    ModelConfig,
    MoEEConfig,
    ReelConfig,
    TextConfig,
    TransformerConfig,
)


def linear(i: int, o: int) -> int:
    return i * o + o


def vlad(dim: int, clusters: int, ghosts: int) -> int:
    return dim * (clusters + ghosts) + 2 * (clusters + ghosts) + dim * clusters


def context_gating(dim: int) -> int:
    return linear(dim, dim) + 2 * dim


def gated(i: int, o: int) -> int:
    """A gated embedding unit."""
    return linear(i, o) + context_gating(o)


def layer(hidden: int, inner: int) -> int:
    """One transformer layer: query, key, value, output, two norms and the feed-forward part."""
    return 4 * linear(hidden, hidden) + 4 * hidden + linear(hidden, inner) + linear(inner, hidden)


def transformer(size: TransformerConfig, causal: bool = False) -> int:
    tables = (size.vocabulary + size.positions + size.types) * size.hidden
    layers = size.layers * layer(size.hidden, size.inner)
    return tables + layers if causal else tables + layers + 2 * size.hidden + linear(size.hidden, size.hidden)


def words(text: TextConfig) -> int:
    """The network or table behind the tokens; 0 for ready vectors and for networks of other libraries."""
    if text.words == "table":
        return text.vocabulary * text.dim
    if text.network is None:
        return 0
    last_norm = 2 * text.network.hidden if text.words == "gpt2" else 0
    return transformer(text.network, causal=text.words != "bert") + last_norm


def pooling(text: TextConfig) -> int:
    if text.pool == "vlad":
        return vlad(text.word_dim, text.clusters, text.ghosts)
    if text.pool == "lstm":
        hidden = text.lstm
        return 4 * hidden * (text.word_dim + hidden + 2) + linear(hidden, hidden)
    return 0


def video_vlad(experts: tuple[ExpertConfig, ...]) -> int:
    return sum(vlad(e.dim, e.clusters, e.ghosts) for e in experts if e.pool == "vlad")


def parameters_by_part(config: ModelConfig) -> dict[str, int]:
    """Part → parameters; their sum is the model's size."""
    own = PARTS[type(config)](config)
    return {"words": words(config.text), "text pooling": pooling(config.text), **own}


def count_parameters(config: ModelConfig) -> int:
    return sum(parameters_by_part(config).values())


def _concat(config: ConcatConfig | MoEEConfig | CEConfig) -> dict[str, int]:
    return {
        "video pooling": video_vlad(config.experts),
        "mixture weights": linear(config.text.out, len(config.experts)),
    }


def _moee(config: MoEEConfig) -> dict[str, int]:
    return {
        **_concat(config),
        "text units": sum(gated(config.text.out, e.dim) for e in config.experts),
        "video units": sum(gated(e.pooled, e.dim) for e in config.experts),
    }


def _ce(config: CEConfig) -> dict[str, int]:
    d, many = config.dim, len(config.experts)
    counts = {
        **_concat(config),
        "text units": many * gated(config.text.out, d),
        "projections": sum(linear(e.pooled, d) for e in config.experts),
    }
    if not config.gating:
        return {**counts, "video gates": many * context_gating(d)}
    step = 2 * d + linear(d, d)
    return {
        **counts,
        "g, first layer": linear(2 * d, d),
        "g, other layers": (config.g_layers - 1) * step,
        "h": config.h_layers * step,
        "video gates": many * (linear(d, d) + 4 * d),
    }


def _mmt(config: MMTConfig) -> dict[str, int]:
    d, many = config.dim, len(config.experts)
    counts = {
        "text units": many * gated(config.text.out, d),
        "mixture weights": many * linear(config.text.out, 1),
        "projections": sum(linear(e.dim, d) for e in config.experts),
    }
    if config.encoder == "mmt":
        counts["transformer"] = config.layers * layer(d, config.inner)
        counts["token tables"] = (config.positions + config.types) * d + 2 * d
        counts["pooler"] = linear(d, d)
    elif config.encoder == "coll":
        counts["g and h"] = linear(2 * d, d) + 4 * linear(d, d) + 8 * d
        counts["video gates"] = many * (linear(d, d) + 4 * d)
    return counts


def _reel(config: ReelConfig) -> dict[str, int]:
    d, text = config.dim, config.text.out
    return {
        "projections": sum(linear(e.dim, d) for e in config.experts),
        "token kinds": (len(config.experts) + 1) * d,
        "transformer": config.layers * layer(d, config.inner),
        "video head": linear(d, d),
        "text head": 2 * text + linear(text, config.hidden) + linear(config.hidden, d) + linear(text, d),
    }


PARTS: Mapping[type[ModelConfig], Callable[[Any], dict[str, int]]] = {
    MoEEConfig: _moee,
    ConcatConfig: _concat,
    CEConfig: _ce,
    MMTConfig: _mmt,
    ReelConfig: _reel,
}
"""What each kind of model has beside its words and their pooling."""
