"""Look-alikes: video → videos.

Items (clips and wholes) of the given video are compared with every item of the library by
`models.similarity.alike`. A video is as like the given one as the best pair of their items; videos that
share no expert with it cannot be compared and are left out. The moments shown are the best pair of clips.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from wordreel.models.similarity import alike, expert_weights
from wordreel.search.filters import Filters
from wordreel.search.hits import Hit, Reason, hit_of
from wordreel.search.question import check_limit
from wordreel.search.reasons import strongest_first
from wordreel.search.refresh import tracks_of
from wordreel.search.sample import Sample
from wordreel.types import Bool, Float32, Int64

if TYPE_CHECKING:
    from wordreel.search.engine import Engine

BLOCK = 16_384  # items compared at once ...
AT_ONCE = 256  # ... with so many clips of the given video


@dataclass(frozen=True)
class Match(Hit):
    """A look-alike, and the moment of the given video that it is like."""

    like: tuple[float, float] = (0.0, 0.0)


def like(engine: Engine, sample: Sample, limit: int = 10, filters: Filters | None = None) -> list[Match]:
    """The videos most like a sample, best first. The sample's own content, under any name, is left out."""
    check_limit(limit)
    paths = (filters or Filters()).paths(engine.files, engine.facts)
    paths.pop(sample.content, None)
    allowed = np.zeros(len(engine), bool)
    for content in paths:
        allowed[engine.rows(content)] = True
    best, pairs = best_pairs(engine, sample, allowed)
    found: list[Match] = []
    seen: set[str] = set()
    for row in np.argsort(-best, kind="stable").tolist():
        content = engine.items[row].content
        if len(found) == limit or np.isneginf(best[row]):
            break
        if content not in seen:
            seen.add(content)
            found.append(_match(engine, sample, len(found) + 1, row, int(pairs[row]), paths[content]))
    return found


def best_pairs(engine: Engine, sample: Sample, allowed: Bool) -> tuple[Float32, Int64]:
    """For every item its best similarity to any clip of the sample, and which clip that was, the first of
    equals; −inf for items that are not allowed or cannot be compared."""
    gallery, weights = engine.gallery, expert_weights(engine.model, sample.vectors.shape[1])
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


def _match(engine: Engine, sample: Sample, rank: int, row: int, asked: int, path: str) -> Match:
    item = engine.items[row]
    mine, theirs = _moments(engine, sample, item.content)
    shares = _shares(engine, sample, asked, row)
    return hit_of(
        Match,
        engine.store,
        item,
        engine.items[theirs],
        path,
        rank=rank,
        score=float(sum(shares)),
        why=_reasons(engine, sample, asked, row, shares),
        like=(sample.clips[mine].start, sample.clips[mine].end),
    )


def _moments(engine: Engine, sample: Sample, content: str) -> tuple[int, int]:
    """The clip of the sample and the item of a video that make the best pair of clips."""
    mine = sample.pieces()
    theirs = [row for row in engine.rows(content) if not engine.items[row].whole] or engine.rows(content)
    weights = expert_weights(engine.model, sample.vectors.shape[1])
    seen, vectors = sample.some(mine), np.asarray(engine.gallery.vectors[theirs])
    scores = _comparable(seen.vectors, seen.available, vectors, engine.gallery.available[theirs], weights)
    first, second = np.unravel_index(int(scores.argmax()), scores.shape)
    return mine[int(first)], theirs[int(second)]


def _comparable(videos: Float32, available: Bool, others: Float32, also: Bool, weights: Float32) -> Float32:
    """`alike`, and −inf where no expert is common to both."""
    common = (available * weights) @ also.T.astype(np.float32)
    return np.where(common > 0, alike(videos, available, others, also, weights), np.float32(-np.inf))


def _shares(engine: Engine, sample: Sample, asked: int, row: int) -> Float32:
    """`[experts]`: each expert's part of the similarity."""
    weights = expert_weights(engine.model, sample.vectors.shape[1])
    weights = weights * sample.available[asked] * engine.gallery.available[row]
    dots = (sample.vectors[asked] * np.asarray(engine.gallery.vectors[row])).sum(axis=1)
    return np.asarray(weights * dots / weights.sum(), np.float32)


def _reasons(engine: Engine, sample: Sample, asked: int, row: int, shares: Float32) -> tuple[Reason, ...]:
    """The experts that both have, by what they agree on."""
    item, model = engine.items[row], engine.model
    told = getattr(model, "shared", None)
    others = tracks_of(engine.store, model, item.content) if told else {}
    said = told(sample.tracks, sample.clips[asked], others, item.clip) if told else {}
    both = sample.available[asked] & engine.gallery.available[row]
    dots = (sample.vectors[asked] * np.asarray(engine.gallery.vectors[row])).sum(axis=1)
    return strongest_first(
        Reason(expert, float(shares[m]), *said.get(expert, (f"{dots[m]:.0%} alike", None)))
        for m, expert in enumerate(model.experts)
        if both[m]
    )
