"""Ranks of the right items after a correction, without storing the corrected matrix.

A rank is 1 for the best, and equal scores share the mean of their ranks:

    rank = 1 + |{v : s(v) > own}| + |{v ≠ right : s(v) = own}| / 2
         = (1 + |{v : s(v) ≥ own}| + |{v : s(v) > own}|) / 2

One pass in blocks that stay in the cache: correct, compare with the right item's score, count. Counting has
no branches, so good and bad ranks cost the same: two comparisons per score.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from wordreel.errors import HubnessError
from wordreel.hubness.blocks import Similarities, SimilaritySource, as_source, blocks_of, each_span
from wordreel.hubness.method import Method
from wordreel.hubness.state import State
from wordreel.types import Array, Float64, Int64

Ties = Literal["average", "optimistic", "pessimistic"]
TIES: dict[Ties, tuple[np.ufunc, np.ufunc, float]] = {  # which two comparisons are counted, and what is added
    "average": (np.greater_equal, np.greater, 0.0),
    "optimistic": (np.greater, np.greater, 0.5),
    "pessimistic": (np.greater_equal, np.greater_equal, -0.5),
}
LANE = 127  # eight-byte words added up together: a byte of them counts at most 2, so none overflows


class RankCounter:
    """Counts ranks in rows of `items` scores, in scratch memory that is reused for the next block."""

    def __init__(self, items: int) -> None:
        self._items = items
        self._lanes = -(-items // (8 * LANE))
        self._words = -(-items // (8 * self._lanes))
        self._at_least, self._above = self._scratch(0), self._scratch(0)

    def ranks(self, scores: Array, own: Array, ties: Ties = "average") -> Float64:
        """Rank in each row of `scores [queries, items]` of the number `own [queries, 1]` that is in that row.

        Ties share the mean of their ranks, or take the first (optimistic) or the last (pessimistic) of them.
        """
        first, second, shift = TIES[ties]
        rows = len(scores)
        if rows > len(self._at_least):
            self._at_least, self._above = self._scratch(rows), self._scratch(rows)
        at_least, above = self._at_least[:rows], self._above[:rows]
        first(scores, own, out=at_least[:, : self._items].view(bool))
        second(scores, own, out=above[:, : self._items].view(bool))
        np.add(at_least, above, out=at_least)
        # Eight counts in one addition: a sum of bytes would be widened first, at three times the cost.
        sums = at_least.view(np.uint64).reshape(rows, self._lanes, self._words).sum(axis=2)
        counts = sums.view(np.uint8).reshape(rows, self._lanes * 8).sum(axis=1, dtype=np.int64)
        return np.asarray((1 + counts) / 2 + shift, np.float64)

    def _scratch(self, rows: int) -> Array:
        return np.zeros((rows, self._lanes * self._words * 8), np.uint8)


def corrected_ranks(
    method: Method, state: State, rows: Similarities, right: Int64, *, threads: int | None = None
) -> Float64:
    """Ranks of the right items as a method orders them, without storing its scores.

    Args:
        method: The normalisation.
        state: What it was fitted to.
        rows: Similarities `[queries, items]`, an array or a source (`product`).
        right: `[queries]`, the number of each query's right item.
        threads: CPU threads; all cores by default.

    Returns:
        `[queries]`: 1 for the best; equal scores share the mean of their ranks.

    Raises:
        HubnessError: The shapes do not fit, or the state is of another method or stale.

    >>> from wordreel.hubness.plain import Plain
    >>> rows = np.array([[0.1, 0.9, 0.9]], np.float32)
    >>> corrected_ranks(Plain(), Plain().fit(rows), rows, np.array([1])).tolist()
    [1.5]
    """
    source, right = _checked(state, rows, right)
    method.check_state(state)
    ranks = np.zeros(len(right))

    def work(start: int, stop: int) -> None:
        scratch: Array = np.empty((0, 0))
        counter = RankCounter(state.items)
        for at, block in blocks_of(source, start, stop):
            span = slice(at, at + len(block))
            kind = method.score_kind(block.values.dtype)
            if scratch.shape != block.values.shape or scratch.dtype != kind:
                scratch = np.empty(block.values.shape, kind)
                score = method.scorer(state, kind)
            score(block, scratch)
            ranks[span] = counter.ranks(scratch, scratch[np.arange(len(scratch)), right[span]][:, None])

    if len(right):
        each_span(source.shape, work, threads)
    return ranks


def _checked(state: State, rows: Similarities, right: Int64) -> tuple[SimilaritySource, Int64]:
    source = as_source(rows, "the query rows")
    if source is None:
        raise HubnessError("pass the query rows as one array or source")
    if source.shape[1] != state.items:
        raise HubnessError(
            f"the query rows have {source.shape[1]} columns but the gallery has {state.items} items"
        )
    right = np.asarray(right)
    if right.shape != (source.shape[0],) or right.dtype.kind not in "iu":
        raise HubnessError(f"{source.shape[0]} queries need as many right item numbers, not {right.shape}")
    if len(right) and (right.min() < 0 or right.max() >= state.items):
        raise HubnessError(f"right items must be numbers from 0 to {state.items - 1}")
    return source, right
