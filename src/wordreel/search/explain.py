"""Why an item was found: what each expert recognised, its share of the score, and the words that matched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from wordreel.library.records import StoredClip, WordRow
from wordreel.models.base import Model
from wordreel.search.embedding import tracks_of
from wordreel.search.hits import Reason
from wordreel.types import Bool, Clip, Float32, QueryEmbedding, Track

if TYPE_CHECKING:
    from wordreel.search.searcher import Searcher

Spoken = Mapping[str, list[WordRow]]


@dataclass(frozen=True, eq=False)
class EncodedText:
    """A text query: its embedding, each term with the word rows that contain it, and the bonus those rows
    add to items, by gallery row."""

    query: QueryEmbedding
    spoken: Spoken
    bonus: Mapping[int, float]


def why(searcher: Searcher, row: int, asked: EncodedText) -> tuple[Reason, ...]:
    """What each expert says of one item, and the matched words with their bonus, strongest first."""
    item, model, gallery = searcher.items[row], searcher.model, searcher.gallery
    tracks = tracks_of(searcher.store, model, item.content)
    vectors = np.asarray(gallery.vectors[row])
    reasons = of_experts(model, asked.query, vectors, gallery.available[row], tracks, item.clip)
    if row in asked.bonus:
        reasons.append(_quotation(item, asked.spoken, asked.bonus[row]))
    return strongest_first(reasons)


def of_experts(
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
    said = model.explain(query, tracks, clip)
    return [
        Reason(expert, float(shares[number]), *said[expert])
        for number, expert in enumerate(model.experts)
        if expert in said
    ]


def strongest_first(reasons: Iterable[Reason]) -> tuple[Reason, ...]:
    return tuple(sorted(reasons, key=lambda reason: -reason.share))


def overlaps(item: StoredClip, word: WordRow) -> bool:
    return item.whole or (word.start < item.end and word.end > item.start)


def _quotation(item: StoredClip, spoken: Spoken, share: float) -> Reason:
    """The line of this item that holds the most query terms."""
    lines = Counter(
        word
        for rows in spoken.values()
        for word in rows
        if word.content == item.content and overlaps(item, word)
    )
    best, _ = max(lines.items(), key=lambda pair: (pair[1], -pair[0].start))
    return Reason(f"{best.expert} words", share, f"“{best.text}”", (best.start, best.end))
