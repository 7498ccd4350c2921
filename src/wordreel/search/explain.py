"""Why an item was found: what each expert recognised, its share of the score, and the words that matched."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from wordreel.catalogue.files import MomentRow, required_moments
from wordreel.catalogue.records import StoredClip
from wordreel.catalogue.store import LibraryStore
from wordreel.embed.embed_library import tracks_of_all
from wordreel.models.base import EmbeddedClip, Evidence, Explanation, Model
from wordreel.search.hits import Hit, Reason, Results, within
from wordreel.search.query import Query
from wordreel.types import Bool, Float32, QueryEmbedding

if TYPE_CHECKING:
    from wordreel.search.searcher import EncodedText, Searcher


def explain_items(
    searcher: Searcher,
    rows: Sequence[int],
    moments: Sequence[StoredClip],
    text: EncodedText,
    lifts: Sequence[float] = (),
) -> list[tuple[Reason, ...]]:
    """Return, for each item, every expert's reason and the quoted words with their bonus.

    The strongest come first.

    `moments` are what is displayed of the items, `lifts` what the ranking added to their scores for a full
    match of the words.
    """
    model, gallery = searcher.model, searcher.snapshot.gallery
    at = np.array(rows, np.int64)
    available = np.asarray(gallery.available)[at]
    held = np.flatnonzero(available.any(axis=0))  # all other experts have nothing to say
    cosines = np.zeros(available.shape, np.float32)
    cosines[:, held] = (text.embedding.vectors[held] * np.asarray(gallery.vectors)[at[:, None], held]).sum(
        axis=2
    )
    recognised = model.explain_all(text.embedding, evidence_of(searcher, rows))
    explained = []
    bonus = (text.lexical.of(at) + (np.array(lifts, np.float32) if len(lifts) else 0)).tolist()
    of_experts = expert_reasons(model, text.embedding, cosines, available, recognised)
    for row, moment, share, reasons in zip(rows, moments, bonus, of_experts, strict=True):
        if share and (line := text.lexical.best_line(searcher.snapshot, row, moment)) is not None:
            reasons.append(Reason(f"{line.expert} words", share, f"“{line.text}”", (line.start, line.end)))
        explained.append(strongest_first(reasons))
    return explained


def evidence_of(searcher: Searcher, rows: Sequence[int]) -> list[Evidence]:
    """Return what the model explains items with: read from their tracks once."""
    known = searcher.evidence.get_many(rows)
    new = [row for row, evidence in known.items() if evidence is None]
    if new:
        items = [searcher.snapshot.items[row] for row in new]
        contents = list(dict.fromkeys(item.content for item in items))
        tracks = dict(zip(contents, tracks_of_all(searcher.store, searcher.model, contents), strict=True))
        vectors = np.asarray(searcher.snapshot.gallery.vectors)[np.array(new, np.int64)]
        clips = [
            EmbeddedClip(tracks[item.content], item.clip, own)
            for item, own in zip(items, vectors, strict=True)
        ]
        for row, read in zip(new, searcher.model.evidence(clips), strict=True):
            known[row] = read
            searcher.evidence.put(row, read)
    return [evidence for row in rows if (evidence := known[row]) is not None]


def expert_reasons(
    model: Model,
    query: QueryEmbedding,
    cosines: Float32,
    available: Bool,
    recognised: Sequence[Explanation],
) -> list[list[Reason]]:
    """Return what each expert recognised in each clip, and its share of the similarity, w a ⟨q, v⟩ / Σ w a.

    `cosines [clips, experts]` are ⟨q, v⟩, `available [clips, experts]` is a.
    """
    weights = query.weights * available
    total = weights.sum(axis=1, keepdims=True)
    shares = weights * cosines / np.where(total > 0, total, 1)
    return [
        [
            Reason(expert, share, *seen[expert])
            for expert, share in zip(model.experts, own, strict=True)
            if expert in seen
        ]
        for own, seen in zip(shares.tolist(), recognised, strict=True)
    ]


def strongest_first(reasons: Iterable[Reason]) -> tuple[Reason, ...]:
    """Sort reasons by their shares."""
    return tuple(sorted(reasons, key=lambda reason: -reason.share))


def with_required(store: LibraryStore, query: Query, results: Results[Hit]) -> Results[Hit]:
    """Return the same hits, whose required people and tags (`hits.REQUIRED`) are their first reasons."""
    if query.filters.lasting or not results.hits:
        return results
    names = [("tag", tag) for tag in query.filters.tags] + [("person", name) for name in query.filters.people]
    required = list(zip(names, required_moments(store.catalogue, query.filters.conditions), strict=True))

    def explained(hit: Hit) -> Hit:
        why = [Reason(expert, 0.0, name, _when(hit, moments)) for (expert, name), moments in required]
        return replace(hit, why=(*within(why, hit.start, hit.end), *hit.why))

    plain = None if results.plain is None else tuple(explained(hit) for hit in results.plain)
    return replace(results, hits=tuple(explained(hit) for hit in results.hits), plain=plain)


def _when(hit: Hit, moments: Sequence[MomentRow]) -> tuple[float, float] | None:
    """Return the first of the moments that overlaps a hit."""
    times = [
        (one.start, one.end)
        for one in moments
        if one.content == hit.content and one.start < hit.end and one.end > hit.start
    ]
    return min(times, default=None)
