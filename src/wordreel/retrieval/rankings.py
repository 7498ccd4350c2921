"""Rank every query: the one routine of `qbnorm`, `evaluate` and `bank check`.

`rank_queries` takes scores in blocks of queries, of one ranking or of several, and keeps of each query the
rank of its right answer and its k best items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from wordreel.hubness import Hubness, k_occurrence, measure_hubness
from wordreel.hubness.blocks import each_span
from wordreel.index.topk import topk_ids
from wordreel.progress import Progress, ProgressCallback
from wordreel.retrieval.caption_ranks import BLOCK, best_own_ranks
from wordreel.retrieval.metrics import RetrievalMetrics, retrieval_metrics
from wordreel.retrieval.ranks import ranks_of
from wordreel.types import Array, Bool, Float64, Int64

ScoreBlocks = Callable[[int, int], Iterable[Array]]
"""Scores `[stop - start, items]` of queries `[start, stop)`, one array per ranking."""
RanksOf = Callable[[Array, int], Float64]
"""The ranks of the right answers in scores of queries from a number on."""


@dataclass(frozen=True)
class Ranking:
    """One ranking of all queries.

    `ranks [queries]` count from 1, NaN for a query without a right answer; `best [queries, up to k]` are the
    first items.
    """

    items: int
    k: int
    ranks: Float64
    best: Int64

    @property
    def answered(self) -> Bool:
        """`[queries]`: those that have a right answer."""
        return ~np.isnan(self.ranks)

    @property
    def metrics(self) -> RetrievalMetrics:
        """Return the figures of the ranking."""
        return retrieval_metrics(self.ranks)

    @property
    def occurrences(self) -> Int64:
        """Nₖ `[items]`: how often each item is among the first k."""
        return k_occurrence(self.best[self.answered], self.best.shape[1], self.items)

    @property
    def hubness(self) -> Hubness:
        """Return how unevenly items are retrieved."""
        return measure_hubness(self.best[self.answered], self.k, self.items)

    def only(self, queries: Bool) -> Ranking:
        """Return the same ranking of some of the queries; the others have no right answer."""
        return replace(self, ranks=np.where(queries, self.ranks, np.nan))


def rank_right_items(right: Int64) -> RanksOf:
    """Rank videos for texts: item `right[query]` answers a query."""
    return lambda scores, start: ranks_of(scores, right[start : start + len(scores)])


def rank_own_items(owner: Int64, *, grouped: bool = False) -> RanksOf:
    """Video to text: the items with `owner[item] == query` answer a query, the best of them counts.

    If `grouped`, a video's captions score as the best of them, and its own group counts among the groups.
    """
    return lambda scores, start: best_own_ranks(scores, owner, start, grouped=grouped)


def rank_queries(
    scores_of: ScoreBlocks,
    ranks_in: RanksOf,
    queries: int,
    items: int,
    rankings: int = 1,
    *,
    k: int = 10,
    batch: int | None = None,
    threads: int | None = None,
    on_progress: ProgressCallback | None = None,
) -> list[Ranking]:
    """Rank `queries` queries over `items` items, block by block; one `Ranking` for each score array.

    >>> similarities = np.array([[0.9, 0.1], [0.8, 0.2]])
    >>> plain, = rank_queries(lambda a, b: [similarities[a:b]], rank_right_items(np.array([0, 1])), 2, 2)
    >>> plain.ranks.tolist(), plain.metrics.r1
    ([1.0, 2.0], 50.0)
    """
    width = min(k, items)
    results = [
        Ranking(items, k, np.empty(queries), np.zeros((queries, width), np.int64)) for _ in range(rankings)
    ]
    step = batch or max(1, BLOCK // items)

    def work(start: int, stop: int) -> None:
        for at in range(start, stop, step):
            span = slice(at, min(at + step, stop))
            for ranking, scores in zip(results, scores_of(span.start, span.stop), strict=True):
                ranking.ranks[span] = ranks_in(scores, at)
                ranking.best[span] = topk_ids(scores, width)
            if on_progress:
                on_progress(Progress("ranking queries", span.stop, queries))

    each_span((queries, items), work, threads)
    return results
