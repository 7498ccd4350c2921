"""Ranks of one score in each row, counted without a branch: the same cost for good ranks and bad ones.

    rank = 1 + |{v : s(v) > own}| + |{v ≠ right : s(v) = own}| / 2
         = (1 + |{v : s(v) ≥ own}| + |{v : s(v) > own}|) / 2

as in `evaluate.ranks`, for finite scores in blocks that stay in the cache. Cost: two comparisons per score.
"""

from __future__ import annotations

import numpy as np

from wordreel.hubness.blocks import Array
from wordreel.types import Float64

LANE = 127  # eight-byte words added up together: a byte of them counts at most 2, so none runs over


class Places:
    """Counts rows of `items` scores, in scratch memory that is used again for the next block."""

    def __init__(self, items: int) -> None:
        self._items = items
        self._lanes = -(-items // (8 * LANE))
        self._words = -(-items // (8 * self._lanes))
        self._reach, self._above = self._scratch(0), self._scratch(0)

    def of(self, scores: Array, own: Array) -> Float64:
        """Rank in each row of `scores [queries, items]` of the score `own [queries, 1]` that stands in it."""
        rows = len(scores)
        if rows > len(self._reach):
            self._reach, self._above = self._scratch(rows), self._scratch(rows)
        reach, above = self._reach[:rows], self._above[:rows]
        np.greater_equal(scores, own, out=reach[:, : self._items].view(bool))
        np.greater(scores, own, out=above[:, : self._items].view(bool))
        np.add(reach, above, out=reach)
        # Eight counts in one addition: a sum of bytes would be widened first, at three times the cost.
        sums = reach.view(np.uint64).reshape(rows, self._lanes, self._words).sum(axis=2)
        counts = sums.view(np.uint8).reshape(rows, self._lanes * 8).sum(axis=1, dtype=np.int64)
        return np.asarray((1 + counts) / 2, np.float64)

    def _scratch(self, rows: int) -> Array:
        return np.zeros((rows, self._lanes * self._words * 8), np.uint8)
