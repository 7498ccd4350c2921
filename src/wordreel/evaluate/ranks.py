"""Ranks of the right answers, and the figures made from them.

A rank is 1 for the best. Items that score the same share the mean of their places, so a model that
cannot tell items apart gets the rank of a guess, never better:

    rank = 1 + |{v : s(v) > s(right)}| + |{v ≠ right : s(v) = s(right)}| / 2

`ties` asks for the bounds instead: the first of the shared places (optimistic) or the last (pessimistic). A
score that is not a number stands below every number. Cost: one pass over the similarities; no sorting.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from wordreel.errors import EvaluationError
from wordreel.types import Bool, Float64

Ties = Literal["average", "optimistic", "pessimistic"]

DENSE = 32  # rows are counted whole where more than one score in 32 reaches the right item's
BYTE = 255  # rows whose hits a byte can count


def ranks_of(similarities: NDArray[Any], right: NDArray[np.int64], ties: Ties = "average") -> Float64:
    """Rank of column `right[i]` in each row of `similarities [queries, items]`.

    >>> ranks_of(np.array([[0.1, 0.9, 0.9]], np.float32), np.array([1])).tolist()
    [1.5]
    """
    return ranks_against(similarities, np.take_along_axis(similarities, right[:, None], axis=1), ties)


def ranks_against(scores: NDArray[Any], own: NDArray[Any], ties: Ties = "average") -> Float64:
    """Rank in each row of `scores [queries, items]` of the score `own [queries, 1]` that stands in it."""
    queries, items = scores.shape
    reach = scores >= own
    if np.count_nonzero(reach) > reach.size // DENSE:
        # Counting a row at a time is several times as fast as a sum over an axis.
        at_least = np.array([np.count_nonzero(row) for row in reach])
        above = np.array([np.count_nonzero(row) for row in scores > own])
    else:
        # Most right items are near the top: look only at the few scores that reach theirs.
        hits = np.flatnonzero(reach)
        rows = hits // items
        at_least = np.bincount(rows, minlength=queries)
        above = np.bincount(rows, scores.ravel()[hits] > own[rows, 0], minlength=queries)
    for row in np.flatnonzero(own[:, 0] != own[:, 0]):
        at_least[row], above[row] = items, items - np.count_nonzero(np.isnan(scores[row]))
    return _place(above, at_least, ties)


def ranks_down(blocks: Iterable[NDArray[Any]], own: NDArray[Any], ties: Ties = "average") -> Float64:
    """Rank in each column of the score `own [columns]` that stands in it; `blocks` are rows of the matrix.

    For matrices that lie in memory the other way round: every block is read once, in the order it lies.
    """
    at_least, above = np.zeros(len(own), np.int64), np.zeros(len(own), np.int64)
    lost = np.flatnonzero(own != own)
    seen = 0
    for block in blocks:
        seen += len(block)
        above[lost] += np.count_nonzero(~np.isnan(block[:, lost]), axis=0)
        for start in range(0, len(block), BYTE):
            rows = block[start : start + BYTE]
            # Bytes add up many times as fast as whole numbers.
            at_least += np.add.reduce((rows >= own).view(np.uint8), axis=0, dtype=np.uint8)
            above += np.add.reduce((rows > own).view(np.uint8), axis=0, dtype=np.uint8)
    at_least[lost] = seen
    return _place(above, at_least, ties)


def _place(above: NDArray[Any], at_least: NDArray[Any], ties: Ties) -> Float64:
    if ties == "optimistic":
        return np.asarray(1 + above, np.float64)
    if ties == "pessimistic":
        return np.asarray(at_least, np.float64)
    if ties != "average":
        raise EvaluationError(f"ties are average, optimistic or pessimistic, not {ties!r}")
    return np.asarray(1 + above + (at_least - above - 1) / 2, np.float64)


@dataclass(frozen=True)
class Recall:
    """Recall in per cent at 1, 5, 10 and 50, ranks, and two sums of it all, over `queries` queries.

    `geometric_mean` is that of R@1, R@5 and R@10, and `rsum` their sum, in one direction: the sum of six
    that some papers print is that of both directions.
    """

    r1: float
    r5: float
    r10: float
    r50: float
    median_rank: float
    mean_rank: float
    geometric_mean: float
    rsum: float
    queries: int


def found_by(ranks: Float64, k: int) -> Bool:
    """Which queries have their answer among the first `k`.

    As published: a tie for the first place is not a first place (1.5 is out for k = 1), but the mean place of
    a tie that begins within a longer list may lie half a place beyond it (5.5 is in for k = 5).
    """
    if k < 1:
        raise EvaluationError(f"recall is counted at 1 or more, not at {k}")
    return np.asarray(ranks == 1 if k == 1 else ranks < k + 1)


def asked(ranks: Float64) -> Float64:
    """The ranks of queries that have a right answer: NaN stands for those that have none.

    >>> asked(np.array([2.0, np.nan])).tolist()
    [2.0]
    """
    ranks = np.asarray(ranks, np.float64)
    ranks = ranks[~np.isnan(ranks)]
    if len(ranks) == 0:
        raise EvaluationError("there are no queries with a right answer; nothing can be measured")
    return ranks


def recall_at(ranks: Float64, k: int) -> float:
    """Share in per cent of the queries that have their answer among the first `k`.

    >>> recall_at(np.array([1.0, 4.0, 20.0, 30.0]), 25)
    75.0
    """
    return 100 * float(np.mean(found_by(asked(ranks), k)))


def recall(ranks: Float64) -> Recall:
    """Average the ranks of many queries; infinity stands for an answer that was not found at all.

    >>> recall(np.array([1.0, 4.0, 20.0, 30.0])).r5
    50.0
    """
    ranks = asked(ranks)
    r1, r5, r10, r50 = (recall_at(ranks, k) for k in (1, 5, 10, 50))
    median, mean = float(np.median(ranks)), float(np.mean(ranks))
    return Recall(r1, r5, r10, r50, median, mean, geometric_mean(r1, r5, r10), r1 + r5 + r10, len(ranks))


def geometric_mean(r1: float, r5: float, r10: float) -> float:
    """(R@1 · R@5 · R@10)^⅓, the figure by which the published systems choose their epoch."""
    return float(np.cbrt(r1 * r5 * r10))
