"""Why an item was found: what each expert recognised, its share of the score, and the words that matched."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from wordreel.models.base import EmbeddedClip, Explanation, Model
from wordreel.search.embedding import tracks_of_all
from wordreel.search.hits import Reason
from wordreel.types import Bool, Float32, QueryEmbedding

if TYPE_CHECKING:
    from wordreel.search.searcher import EncodedText, Searcher


def explain_items(searcher: Searcher, rows: Sequence[int], text: EncodedText) -> list[tuple[Reason, ...]]:
    """Of each item, every expert's reason and the quoted words with their bonus, strongest first."""
    model, gallery = searcher.model, searcher.snapshot.gallery
    items = [searcher.snapshot.items[row] for row in rows]
    contents = list(dict.fromkeys(item.content for item in items))
    tracks = dict(zip(contents, tracks_of_all(searcher.store, model, contents), strict=True))
    vectors = np.asarray(gallery.vectors[np.array(rows, np.int64)])
    clips = [
        EmbeddedClip(tracks[item.content], item.clip, own) for item, own in zip(items, vectors, strict=True)
    ]
    recognised = model.explain_all(text.embedding, clips)
    available = np.asarray(gallery.available[np.array(rows, np.int64)])
    explained = []
    bonus = text.lexical.of(np.array(rows, np.int64)).tolist()
    of_experts = expert_reasons(model, text.embedding, vectors, available, recognised)
    for item, share, reasons in zip(items, bonus, of_experts, strict=True):
        if share:
            line = text.lexical.best_line(item)
            reasons.append(Reason(f"{line.expert} words", share, f"“{line.text}”", (line.start, line.end)))
        explained.append(strongest_first(reasons))
    return explained


def expert_reasons(
    model: Model,
    query: QueryEmbedding,
    vectors: Float32,
    available: Bool,
    recognised: Sequence[Explanation],
) -> list[list[Reason]]:
    """What each expert recognised in each clip, and its share of the similarity, w a ⟨q, v⟩ / Σ w a.

    `vectors [clips, experts, dim]`, `available [clips, experts]`.
    """
    weights = query.weights * available
    total = weights.sum(axis=1, keepdims=True)
    shares = weights * (query.vectors * vectors).sum(axis=2) / np.where(total > 0, total, 1)
    return [
        [
            Reason(expert, share, *seen[expert])
            for expert, share in zip(model.experts, own, strict=True)
            if expert in seen
        ]
        for own, seen in zip(shares.tolist(), recognised, strict=True)
    ]


def strongest_first(reasons: Iterable[Reason]) -> tuple[Reason, ...]:
    return tuple(sorted(reasons, key=lambda reason: -reason.share))
