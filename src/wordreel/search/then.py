"""First this, later that, in one video.

    score(v) = max over clips a, b of v with b after a of  s(first, a) + s(second, b)

s is the score that ranks a search, with its correction and its bonus for words. Clips of a video cover it in
order without overlap, so "after" means that b starts where a ends or later. A video of one clip has no pair
and is never a hit. The best `a` before every clip is a running maximum over ranks, exact in whole numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from wordreel.index.base import Best
from wordreel.search.explain import explain_items
from wordreel.search.hits import Hit, Results, SequenceHit, hit_of
from wordreel.search.query import Query, needs_confidence
from wordreel.search.scoring import Scoring
from wordreel.search.segments import Scores, segment_argmax, take_segments
from wordreel.search.snapshot import LibrarySnapshot
from wordreel.search.text_search import CANDIDATES, TextSearch, never_rising
from wordreel.search.words.passing_videos import allowed_items
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
    """Return the videos that show `text` and later `then`, best first, each with its best pair of moments.

    The confidence of a pair is the lower one of its two.
    """
    if query.min_confidence > 0 and scoring.confidence is None:
        raise needs_confidence()
    snapshot = searcher.snapshot
    passing = snapshot.passing(query.filters)
    weights = tuple(encoded[0].embedding.weights.tolist())
    notices = tuple(dict.fromkeys(notice for text in encoded for notice in text.understanding.notices))
    if not passing.count:
        return Results((), scoring.norm.label, scoring.note, notices, 0, weights)
    texts = [TextSearch(searcher, text, scoring) for text in encoded]
    parts = [
        _Part.of(text, allowed_items(text, phrases, texts[2:], passing))
        for text, phrases in zip(texts, (query.phrases, query.then_phrases), strict=False)
    ]
    ranked = _ranked_pairs(parts, query, snapshot)[: query.offset + query.limit]
    sure = _confidences(parts, ranked)
    sure = None if sure is None else never_rising(sure)
    pairs = ranked[query.offset :]
    records = passing.records([snapshot.items[pair.first].content for pair in pairs])
    there = [  # not removed since the snapshot
        (number, pair)
        for number, pair in enumerate(pairs, start=query.offset)
        if snapshot.items[pair.first].content in records
    ]
    firsts = [pair.first for _, pair in there]
    reasons = explain_items(searcher, firsts, [snapshot.items[row] for row in firsts], encoded[0])
    hits: list[Hit] = []
    for (number, pair), why in zip(there, reasons, strict=True):
        one, two = snapshot.items[pair.first], snapshot.items[pair.second]
        hits.append(
            hit_of(
                SequenceHit,
                records[one.content],
                one,
                rank=query.offset + len(hits) + 1,
                score=pair.score,
                why=why,
                confidence=None if sure is None else float(sure[number]),
                norm=scoring.norm.label,
                then=(two.start, two.end),
                then_score=float(parts[1].search.scores(np.array([pair.second]))[0]),
            )
        )
    return Results(tuple(hits), scoring.norm.label, scoring.note, notices, passing.count, weights)


@dataclass(frozen=True, eq=False)
class _Part:
    """One of the two texts, and which clips `[rows]` may be its moment."""

    search: TextSearch
    allowed: Bool

    @classmethod
    def of(cls, search: TextSearch, allowed: Bool | None) -> _Part:
        snapshot = search.searcher.snapshot
        clips = snapshot.columns.clips["whole"] == 0
        return cls(search, clips & (snapshot.live if allowed is None else allowed))

    def best(self, depth: int) -> Best:
        index, search = self.search.searcher.snapshot.index, self.search
        return index.best(search.vectors, search.weights, depth, self.allowed, search.bias)


def _confidences(parts: Sequence[_Part], pairs: Sequence[ClipPair]) -> Float32 | None:
    """Return the lower one of each pair's two; None without a query bank that can tell."""
    first = parts[0].search.confidences(np.array([pair.first for pair in pairs], np.int64))
    second = parts[1].search.confidences(np.array([pair.second for pair in pairs], np.int64))
    return None if first is None or second is None else np.minimum(first, second)


def _ranked_pairs(parts: Sequence[_Part], query: Query, snapshot: LibrarySnapshot) -> list[ClipPair]:
    """Return the best pair of each video, best first.

    Only videos with a clip among the best of either text, or with its words, are paired. The two last scores
    seen bound those of all other videos, so the search goes deeper until the bound is passed (the threshold
    algorithm of Fagin et al., 2001). A norm that rescores has no bound: it sees the first candidates.
    """
    limit, depth, before = query.offset + query.limit, max(CANDIDATES, 4 * query.limit), -1
    while True:
        k = min(depth, len(snapshot.columns))
        found = [part.best(k) for part in parts]
        seen = [best.rows[0][best.rows[0] >= 0] for best in found]
        seen += [part.search.text.lexical.items for part in parts]
        videos = np.unique(snapshot.columns.video[np.concatenate(seen)])
        at = np.searchsorted(snapshot.video_numbers, videos)
        rows, _ = take_segments(*snapshot.segments, at)
        allowed = np.stack([part.allowed[rows] for part in parts])
        rows, allowed = rows[allowed.any(axis=0)], allowed[:, allowed.any(axis=0)]
        scores = np.stack([part.search.scores(rows) for part in parts])
        if query.min_confidence > 0:
            known = [part.search.confidences(rows) for part in parts]
            allowed &= np.stack([some >= query.min_confidence for some in known if some is not None])
        pairs = sorted(
            best_pairs(snapshot, rows, scores, allowed), key=lambda pair: (-pair.score, pair.first)
        )
        bound = sum(float(best.scores[0, -1]) if k else -np.inf for best in found)
        certain = len(pairs) >= limit and pairs[limit - 1].score >= bound
        barren = query.min_confidence > 0 and len(pairs) == before  # deeper, and no pair more
        if certain or barren or np.isneginf(bound) or parts[0].search.scoring.norm.rescore is not None:
            return pairs
        depth, before = 4 * depth, len(pairs)


def best_pairs(snapshot: LibrarySnapshot, rows: Int64, scores: Scores, allowed: Bool) -> list[ClipPair]:
    """Return the best pair of every video that has one.

    From the `scores [2, n]` of its clips `rows [n]` and whether each is `allowed [2, n]`; wholes are left
    out.

    Of equal pairs the one with the earliest clips counts.
    """
    columns = snapshot.columns
    at = np.flatnonzero(columns.clips["whole"][rows] == 0)
    if not len(at):
        return []
    at = at[np.lexsort((columns.clips["start"][rows[at]], columns.video[rows[at]]))]
    rows, scores, allowed = rows[at], scores[:, at], allowed[:, at]
    video = columns.video[rows].astype(np.int64)
    leads = np.where(allowed[0], scores[0], -np.inf)
    follows = np.where(allowed[1], scores[1], -np.inf)
    best = _best_so_far(leads, video)
    before = np.concatenate([[0], best[:-1]])
    paired = np.concatenate([[False], video[1:] == video[:-1]])
    total = np.where(paired, leads[before] + follows, -np.inf)
    starts = np.flatnonzero(np.concatenate([[True], video[1:] != video[:-1]]))
    most, chosen = segment_argmax(total, starts)
    return [
        ClipPair(int(rows[before[here]]), int(rows[here]), float(total[here]))
        for here, value in zip(chosen.tolist(), most.tolist(), strict=True)
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
