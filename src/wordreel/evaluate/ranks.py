"""Ranks of the right answers, and the figures made from them.

A rank is 1 for the best. Items that score the same share the mean of their places, so a model that
cannot tell items apart gets the rank of a guess, never better:

    rank = 1 + |{v : s(v) > s(right)}| + |{v ≠ right : s(v) = s(right)}| / 2

Cost: one pass over the similarities; no sorting.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordreel.types import Float64

DENSE = 32  # rows are counted whole where more than one score in 32 reaches the right item's


def ranks_of(similarities: NDArray[Any], right: NDArray[np.int64]) -> Float64:
    """Rank of column `right[i]` in each row of `similarities [queries, items]`.

    >>> ranks_of(np.array([[0.1, 0.9, 0.9]], np.float32), np.array([1])).tolist()
    [1.5]
    """
    return ranks_against(similarities, np.take_along_axis(similarities, right[:, None], axis=1))


def ranks_against(scores: NDArray[Any], own: NDArray[Any]) -> Float64:
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
    return np.asarray(1 + above + (at_least - above - 1) / 2, np.float64)


@dataclass(frozen=True)
class Recall:
    """Recall in per cent at 1, 5 and 10, median and mean rank, over `queries` queries."""

    r1: float
    r5: float
    r10: float
    median_rank: float
    mean_rank: float
    queries: int


def recall(ranks: Float64) -> Recall:
    """Average the ranks of many queries.

    >>> recall(np.array([1.0, 4.0, 20.0, 30.0])).r5
    50.0
    """
    if len(ranks) == 0:
        raise ValueError("no queries to average over")
    at = {k: 100 * float(np.mean(ranks <= k)) for k in (1, 5, 10)}
    return Recall(at[1], at[5], at[10], float(np.median(ranks)), float(np.mean(ranks)), len(ranks))
