"""First this, later that, in one video.

    score(v) = max over clips a, b of v with b after a of  s(first, a) + s(second, b)

s is the score that ranks a search, with its correction and its bonus for words. Clips of a video cover it in
order without overlap, so "after" means that b starts where a ends or later. A video of one clip has no pair
and is never a hit. The best `a` before every clip is a running maximum over ranks, exact in whole numbers;
the cost is that of scoring all items for two queries and one sort.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from wordreel.search.explain import explain_item
from wordreel.search.hits import Hit, Results, SequenceHit, hit_of
from wordreel.search.query import Query, needs_confidence
from wordreel.search.scoring import PLAIN, ConfidenceFunction, Scoring
from wordreel.search.segments import Scores, segment_argmax
from wordreel.search.snapshot import LibrarySnapshot
from wordreel.types import Bool, Float32, Int64

if TYPE_CHECKING:
    from wordreel.search.searcher import EncodedText, Searcher


@dataclass(frozen=True)
class ClipPair:
    """Items `first` and `second` of one video, by row, and the sum of their scores."""

    first: int
    second: int
    score: float


def search_sequence(
    searcher: Searcher, encoded: Sequence[EncodedText], query: Query, scoring: Scoring
) -> Results[Hit]:
    """The videos that show `text` and later `then`, best first, each with its best pair of moments.

    The confidence of a pair is the lower one of its two.
    """
    if query.min_confidence > 0 and scoring.confidence is None:
        raise needs_confidence()
    snapshot = searcher.snapshot
    paths = query.filters.paths(snapshot.files, snapshot.facts)
    weights = tuple(encoded[0].embedding.weights.tolist())
    if not paths or not len(snapshot):
        return Results((), scoring.norm.label, scoring.note, len(paths), weights)
    scored = searcher.encoded_item_scores(encoded, [scoring.norm, PLAIN])
    scores = next(scored).astype(np.float64)
    confidence = None
    if scoring.confidence is not None:
        confidence = _confidences(snapshot, next(scored), scoring.confidence)
    usable = np.array([not item.whole and item.content in paths for item in snapshot.items])
    allowed = np.stack([usable, usable])
    if confidence is not None:
        allowed &= confidence >= query.min_confidence
    pairs = sorted(best_pairs(snapshot, scores, allowed), key=lambda pair: (-pair.score, pair.first))
    hits = []
    for rank, pair in enumerate(pairs[query.offset : query.offset + query.limit], start=query.offset + 1):
        one, two = snapshot.items[pair.first], snapshot.items[pair.second]
        lower = None
        if confidence is not None:
            lower = float(min(confidence[0, pair.first], confidence[1, pair.second]))
        hits.append(
            hit_of(
                SequenceHit,
                searcher.store,
                one,
                one,
                paths[one.content],
                rank=rank,
                score=pair.score,
                why=explain_item(searcher, pair.first, encoded[0]),
                confidence=lower,
                norm=scoring.norm.label,
                then=(two.start, two.end),
                then_score=float(scores[1, pair.second]),
            )
        )
    return Results(tuple(hits), scoring.norm.label, scoring.note, len(paths), weights)


def best_pairs(snapshot: LibrarySnapshot, scores: Scores, allowed: Bool) -> list[ClipPair]:
    """The best pair of every video that has one, from `scores [2, items]` and `allowed [2, items]`.

    Of equal pairs the one with the earliest clips counts.
    """
    clips = [row for row, item in enumerate(snapshot.items) if not item.whole]
    if not clips:
        return []
    numbers = {content: number for number, content in enumerate(snapshot.contents())}
    rows = np.array(clips, np.int64)
    video = np.array([numbers[snapshot.items[row].content] for row in clips], np.int64)
    start = np.array([snapshot.items[row].start for row in clips])
    order = np.lexsort((start, video))
    rows, video = rows[order], video[order]
    leads = np.where(allowed[0, rows], scores[0, rows], -np.inf)
    follows = np.where(allowed[1, rows], scores[1, rows], -np.inf)
    best = _best_so_far(leads, video)
    before = np.concatenate([[0], best[:-1]])
    paired = np.concatenate([[False], video[1:] == video[:-1]])
    total = np.where(paired, leads[before] + follows, -np.inf)
    starts = np.flatnonzero(np.concatenate([[True], video[1:] != video[:-1]]))
    most, chosen = segment_argmax(total, starts)
    return [
        ClipPair(int(rows[before[at]]), int(rows[at]), float(total[at]))
        for at, value in zip(chosen.tolist(), most.tolist(), strict=True)
        if np.isfinite(value)
    ]


def _best_so_far(scores: Scores, video: Int64) -> Int64:
    """For every clip the best clip of its video up to and including it; of equals the first."""
    count = len(scores)
    rank = np.empty(count, np.int64)
    # Worst first, and of equals the later first: so that the earlier has the higher rank.
    rank[np.lexsort((-np.arange(count), scores))] = np.arange(count)
    position = np.empty(count, np.int64)
    position[rank] = np.arange(count)
    return np.asarray(position[np.maximum.accumulate(video * count + rank) % count], np.int64)


def _confidences(snapshot: LibrarySnapshot, scores: Scores, confidence: ConfidenceFunction) -> Float32:
    plain = np.asarray(scores, np.float32)
    return np.stack([confidence(row, snapshot.best_rows(row[None])[0]) for row in plain])
