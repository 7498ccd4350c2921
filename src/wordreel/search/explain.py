"""Why an item was found: what each expert recognised, its share of the score, and the words that matched."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from wordreel.models.base import EmbeddedClip, Explanation, Model
from wordreel.search.embedding import tracks_of
from wordreel.search.hits import Reason
from wordreel.types import Bool, Float32, QueryEmbedding

if TYPE_CHECKING:
    from wordreel.search.searcher import EncodedText, Searcher


def explain_items(searcher: Searcher, rows: Sequence[int], text: EncodedText) -> list[tuple[Reason, ...]]:
    """Of each item, every expert's reason and the quoted words with their bonus, strongest first."""
    model, gallery = searcher.model, searcher.snapshot.gallery
    items = [searcher.snapshot.items[row] for row in rows]
    contents = dict.fromkeys(item.content for item in items)
    tracks = {content: tracks_of(searcher.store, model, content) for content in contents}
    clips = [
        EmbeddedClip(tracks[item.content], item.clip, np.asarray(gallery.vectors[row]))
        for row, item in zip(rows, items, strict=True)
    ]
    explained = []
    recognised = model.explain_all(text.embedding, clips)
    for row, item, clip, seen in zip(rows, items, clips, recognised, strict=True):
        reasons = expert_reasons(model, text.embedding, clip.vectors, gallery.available[row], seen)
        if row in text.lexical.bonus:
            line = text.lexical.best_line(item)
            share = text.lexical.bonus[row]
            reasons.append(Reason(f"{line.expert} words", share, f"“{line.text}”", (line.start, line.end)))
        explained.append(strongest_first(reasons))
    return explained


def expert_reasons(
    model: Model, query: QueryEmbedding, vectors: Float32, available: Bool, recognised: Explanation
) -> list[Reason]:
    """What each expert recognised in a clip, and its share of the similarity, w a ⟨q, v⟩ / Σ w a."""
    weights = query.weights * available
    total = weights.sum()
    shares = weights * (query.vectors * vectors).sum(axis=1) / total if total > 0 else weights
    return [
        Reason(expert, float(shares[number]), *recognised[expert])
        for number, expert in enumerate(model.experts)
        if expert in recognised
    ]


def strongest_first(reasons: Iterable[Reason]) -> tuple[Reason, ...]:
    return tuple(sorted(reasons, key=lambda reason: -reason.share))
