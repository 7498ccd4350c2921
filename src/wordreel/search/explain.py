"""Why an item was found: what each expert recognised, its share of the score, and the words that matched."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from wordreel.models.base import Model
from wordreel.search.embedding import tracks_of
from wordreel.search.hits import Reason
from wordreel.types import Bool, Clip, Float32, QueryEmbedding, Track

if TYPE_CHECKING:
    from wordreel.search.searcher import EncodedText, Searcher


def explain_item(searcher: Searcher, row: int, text: EncodedText) -> tuple[Reason, ...]:
    """Each expert's reason for one item, and the quoted words with their bonus, strongest first."""
    item, model, gallery = searcher.snapshot.items[row], searcher.model, searcher.snapshot.gallery
    tracks = tracks_of(searcher.store, model, item.content)
    vectors = np.asarray(gallery.vectors[row])
    reasons = expert_reasons(model, text.embedding, vectors, gallery.available[row], tracks, item.clip)
    if row in text.lexical.bonus:
        line = text.lexical.best_line(item)
        share = text.lexical.bonus[row]
        reasons.append(Reason(f"{line.expert} words", share, f"“{line.text}”", (line.start, line.end)))
    return strongest_first(reasons)


def expert_reasons(
    model: Model,
    query: QueryEmbedding,
    vectors: Float32,
    available: Bool,
    tracks: Mapping[str, Track],
    clip: Clip,
) -> list[Reason]:
    """What each expert recognised in a clip, and its share of the similarity, w a ⟨q, v⟩ / Σ w a."""
    weights = query.weights * available
    total = weights.sum()
    shares = weights * (query.vectors * vectors).sum(axis=1) / total if total > 0 else weights
    recognised = model.explain(query, tracks, clip)
    return [
        Reason(expert, float(shares[number]), *recognised[expert])
        for number, expert in enumerate(model.experts)
        if expert in recognised
    ]


def strongest_first(reasons: Iterable[Reason]) -> tuple[Reason, ...]:
    return tuple(sorted(reasons, key=lambda reason: -reason.share))
