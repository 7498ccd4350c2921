"""Look-alikes: video → videos.

Items (clips and wholes) of the given video are compared with every item of the library by
`models.similarity.alike`. A video is as like the given one as the best pair of their items; videos that
share no expert with it cannot be compared and are left out. The moments shown are the best pair of clips.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from wordreel.models.base import mixture_weights
from wordreel.models.similarity import alike
from wordreel.search.embedding import tracks_of
from wordreel.search.explain import strongest_first
from wordreel.search.filters import Filters
from wordreel.search.hits import Hit, Reason, hit_of
from wordreel.search.query import check_limit
from wordreel.search.video_query import VideoQuery
from wordreel.types import Bool, Float32, Int64

if TYPE_CHECKING:
    from wordreel.search.searcher import Searcher

BLOCK = 16_384  # items compared at once ...
AT_ONCE = 256  # ... with so many clips of the given video


@dataclass(frozen=True)
class Match(Hit):
    """A look-alike, and the moment of the given video that it is like."""

    like: tuple[float, float] = (0.0, 0.0)


def like(
    searcher: Searcher, sample: VideoQuery, limit: int = 10, filters: Filters | None = None
) -> list[Match]:
    """The videos most like a sample, best first. The sample's own content, under any name, is left out."""
    check_limit(limit)
    paths = (filters or Filters()).paths(searcher.files, searcher.facts)
    paths.pop(sample.content, None)
    allowed = np.zeros(len(searcher), bool)
    for content in paths:
        allowed[searcher.rows(content)] = True
    best, pairs = best_pairs(searcher, sample, allowed)
    found: list[Match] = []
    seen: set[str] = set()
    for row in np.argsort(-best, kind="stable").tolist():
        content = searcher.items[row].content
        if len(found) == limit or np.isneginf(best[row]):
            break
        if content not in seen:
            seen.add(content)
            found.append(_match(searcher, sample, len(found) + 1, row, int(pairs[row]), paths[content]))
    return found


def best_pairs(searcher: Searcher, sample: VideoQuery, allowed: Bool) -> tuple[Float32, Int64]:
    """For every item its best similarity to any clip of the sample, and which clip that was, the first of
    equals; −inf for items that are not allowed or cannot be compared."""
    gallery, weights = searcher.gallery, mixture_weights(searcher.model)
    best: Float32 = np.full(len(allowed), -np.inf, np.float32)
    pairs = np.zeros(len(allowed), np.int64)
    for start in range(0, len(allowed), BLOCK):
        rows = start + np.flatnonzero(allowed[start : start + BLOCK])
        if not len(rows):
            continue
        vectors, available = np.asarray(gallery.vectors[rows]), gallery.available[rows]
        for first in range(0, len(sample.clips), AT_ONCE):
            some = slice(first, first + AT_ONCE)
            scores = _comparable(sample.vectors[some], sample.available[some], vectors, available, weights)
            top = scores.argmax(axis=0)
            value = np.take_along_axis(scores, top[None], axis=0)[0]
            better = value > best[rows]
            best[rows[better]] = value[better]
            pairs[rows[better]] = first + top[better]
    return best, pairs


def _match(searcher: Searcher, sample: VideoQuery, rank: int, row: int, asked: int, path: str) -> Match:
    item = searcher.items[row]
    mine, theirs = _moments(searcher, sample, item.content)
    shares = _shares(searcher, sample, asked, row)
    return hit_of(
        Match,
        searcher.store,
        item,
        searcher.items[theirs],
        path,
        rank=rank,
        score=float(sum(shares)),
        why=_reasons(searcher, sample, asked, row, shares),
        like=(sample.clips[mine].start, sample.clips[mine].end),
    )


def _moments(searcher: Searcher, sample: VideoQuery, content: str) -> tuple[int, int]:
    """The clip of the sample and the item of a video that make the best pair of clips."""
    mine = sample.pieces()
    theirs = [row for row in searcher.rows(content) if not searcher.items[row].whole] or searcher.rows(
        content
    )
    weights = mixture_weights(searcher.model)
    seen, vectors = sample.some(mine), np.asarray(searcher.gallery.vectors[theirs])
    scores = _comparable(seen.vectors, seen.available, vectors, searcher.gallery.available[theirs], weights)
    first, second = np.unravel_index(int(scores.argmax()), scores.shape)
    return mine[int(first)], theirs[int(second)]


def _comparable(videos: Float32, available: Bool, others: Float32, also: Bool, weights: Float32) -> Float32:
    """`alike`, and −inf where no expert is common to both."""
    common = (available * weights) @ also.T.astype(np.float32)
    return np.where(common > 0, alike(videos, available, others, also, weights), np.float32(-np.inf))


def _shares(searcher: Searcher, sample: VideoQuery, asked: int, row: int) -> Float32:
    """`[experts]`: each expert's part of the similarity."""
    weights = mixture_weights(searcher.model)
    weights = weights * sample.available[asked] * searcher.gallery.available[row]
    dots = (sample.vectors[asked] * np.asarray(searcher.gallery.vectors[row])).sum(axis=1)
    return np.asarray(weights * dots / weights.sum(), np.float32)


def _reasons(
    searcher: Searcher, sample: VideoQuery, asked: int, row: int, shares: Float32
) -> tuple[Reason, ...]:
    """The experts that both have, by what they agree on."""
    item, model = searcher.items[row], searcher.model
    others = tracks_of(searcher.store, model, item.content)
    said = model.compare(sample.tracks, sample.clips[asked], others, item.clip)
    both = sample.available[asked] & searcher.gallery.available[row]
    dots = (sample.vectors[asked] * np.asarray(searcher.gallery.vectors[row])).sum(axis=1)
    return strongest_first(
        Reason(expert, float(shares[m]), *said.get(expert, (f"{dots[m]:.0%} alike", None)))
        for m, expert in enumerate(model.experts)
        if both[m]
    )
