"""First this, later that, in one video.

    score(v) = max over clips a, b of v with b after a of  s(first, a) + s(second, b)

s is the score that ranks a search, with its correction and its bonus for words. Clips of a video cover it in
order without overlap, so "after" means that b begins where a ends or later. A video of one clip has no pair
and is not found. The best `a` before every clip is a running maximum over ranks, exact in whole numbers: the
cost is that of scoring all items for two queries and one sort.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wordreel.search.explain import EncodedText, why
from wordreel.search.filters import Filters
from wordreel.search.hits import Hit, hit_of
from wordreel.search.query import checked
from wordreel.search.scoring import PLAIN, ConfidenceFunction, FittedNorm
from wordreel.search.searcher import Searcher
from wordreel.search.segments import Scores, segment_argmax
from wordreel.types import Float32, Int64


@dataclass(frozen=True)
class ClipPair:
    """Items `first` and `second` of one video, by row, and the sum of their scores."""

    first: int
    second: int
    score: float


@dataclass(frozen=True)
class SequenceHit(Hit):
    """A hit for the first words, whose `score` is the sum, and the later moment for the second."""

    then: tuple[float, float] = (0.0, 0.0)
    then_score: float = 0.0


def then(
    searcher: Searcher,
    first: str,
    second: str,
    limit: int = 10,
    filters: Filters | None = None,
    norm: FittedNorm = PLAIN,
    confidence: ConfidenceFunction | None = None,
    min_confidence: float = 0.0,
    offset: int = 0,
) -> list[SequenceHit]:
    """The videos that show `first` and later `second`, best first, each with its best pair of moments.

    A pair is as sure as the less sure of its two.
    """
    texts = checked([first, second], limit, confidence, min_confidence)
    paths = (filters or Filters()).paths(searcher.files, searcher.facts)
    if not paths or not len(searcher):
        return []
    made = searcher.item_scores(texts, [norm, PLAIN])
    scores = next(made).astype(np.float64)
    sure = None if confidence is None else _sure(searcher, next(made), confidence)
    usable = np.array([not item.whole and item.content in paths for item in searcher.items])
    allowed = np.stack([usable, usable])
    if sure is not None:
        allowed &= sure >= min_confidence
    found = sorted(best_pairs(searcher, scores, allowed), key=lambda pair: (-pair.score, pair.first))
    shown = found[offset : offset + limit]
    asked = searcher.ask(texts[0])
    return [
        _sequel(searcher, asked, rank, pair, scores, sure, paths, norm)
        for rank, pair in enumerate(shown, start=offset + 1)
    ]


def best_pairs(searcher: Searcher, scores: Scores, allowed: np.ndarray) -> list[ClipPair]:
    """The best pair of every video that has one, from `scores [2, items]` and `allowed [2, items]`.

    Of equal pairs the one with the earliest clips counts.
    """
    clips = [row for row, item in enumerate(searcher.items) if not item.whole]
    if not clips:
        return []
    numbers = {content: number for number, content in enumerate(searcher.contents())}
    rows = np.array(clips, np.int64)
    video = np.array([numbers[searcher.items[row].content] for row in clips], np.int64)
    start = np.array([searcher.items[row].start for row in clips])
    order = np.lexsort((start, video))
    rows, video = rows[order], video[order]
    leads = np.where(allowed[0, rows], scores[0, rows], -np.inf)
    follows = np.where(allowed[1, rows], scores[1, rows], -np.inf)
    best = _best_so_far(leads, video)
    before = np.concatenate([[0], best[:-1]])
    paired = np.concatenate([[False], video[1:] == video[:-1]])
    total = np.where(paired, leads[before] + follows, -np.inf)
    edges = np.flatnonzero(np.concatenate([[True], video[1:] != video[:-1]]))
    most, chosen = segment_argmax(total, edges)
    return [
        ClipPair(int(rows[before[at]]), int(rows[at]), float(total[at]))
        for at, value in zip(chosen.tolist(), most.tolist(), strict=True)
        if np.isfinite(value)
    ]


def _best_so_far(scores: Scores, video: Int64) -> Int64:
    """For every clip the best clip of its video up to and with it; of equals the first."""
    count = len(scores)
    rank = np.empty(count, np.int64)
    # Worst first, and of equals the later first: so that the earlier has the higher rank.
    rank[np.lexsort((-np.arange(count), scores))] = np.arange(count)
    place = np.empty(count, np.int64)
    place[rank] = np.arange(count)
    return np.asarray(place[np.maximum.accumulate(video * count + rank) % count], np.int64)


def _sure(searcher: Searcher, scores: Scores, confidence: ConfidenceFunction) -> Float32:
    plain = np.asarray(scores, np.float32)
    return np.stack([confidence(row, searcher.best_rows(row[None])[0]) for row in plain])


def _sequel(
    searcher: Searcher,
    asked: EncodedText,
    rank: int,
    pair: ClipPair,
    scores: Scores,
    sure: Float32 | None,
    paths: dict[str, str],
    norm: FittedNorm,
) -> SequenceHit:
    one, two = searcher.items[pair.first], searcher.items[pair.second]
    return hit_of(
        SequenceHit,
        searcher.store,
        one,
        one,
        paths[one.content],
        rank=rank,
        score=pair.score,
        why=why(searcher, pair.first, asked),
        confidence=None if sure is None else float(min(sure[0, pair.first], sure[1, pair.second])),
        norm=norm.label,
        then=(two.start, two.end),
        then_score=float(scores[1, pair.second]),
    )
