"""The k best gallery items of each bank query, from which the activation set follows.

    A = ∪ⱼ top-kᵥ s(bⱼ, v)

Equal similarities go to the item with the lower number. Each bank query's best items are stored, not one
bit per item, O(bank · k): so a query can be dropped, and a new item takes exactly the queries it wins. When
an item is removed, the queries it had won are stale until their rows are given again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from wordreel.errors import HubnessError
from wordreel.hubness.blocks import SimilarityBlock
from wordreel.index.topk import topk_ids
from wordreel.types import Array, Bool, Int64


@dataclass(frozen=True)
class ActivationSet:
    """`ids [bank, k]`, best first, -1 where the gallery is shorter than k, and their `scores`."""

    k: int
    items: int
    ids: NDArray[np.int32]
    scores: Array

    @property
    def size(self) -> int:
        return len(self.ids)

    @property
    def stale(self) -> Bool:
        return np.zeros(self.items, bool)

    @property
    def stale_rows(self) -> Int64:
        return np.flatnonzero((self.ids >= 0).sum(axis=1) < min(self.k, self.items))

    @property
    def counts(self) -> Int64:
        """How many bank queries have each item among their k best, `[items]`."""
        return np.bincount(self.ids[self.ids >= 0], minlength=self.items)

    def merge(self, other: ActivationSet) -> ActivationSet:
        ids = np.concatenate([self.ids, other.ids])
        return replace(self, ids=ids, scores=np.concatenate([self.scores, other.scores]))

    def drop(self, block: SimilarityBlock, at: Int64 | None) -> ActivationSet:
        if len(self.stale_rows):
            raise HubnessError("some bank queries are stale; call refit_rows before dropping queries")
        ids, scores = best_of(block, self.k)
        matches = [self._matches(row, score) for row, score in zip(ids, scores, strict=True)]
        if any(len(rows) == 0 for rows in matches):
            raise HubnessError("a query to drop is not in the bank; pass the rows it was fitted with")
        alive = np.ones(self.size, bool)
        if at is not None:
            if any(position not in rows for position, rows in zip(at, matches, strict=True)):
                raise HubnessError("the rows to drop are not those of the bank queries named in `at`")
            alive[at] = False
        else:
            # Queries that look the same here may still differ, and the order of the bank matters to extend().
            alive[np.concatenate(matches)] = False
            if self.size - int(alive.sum()) != len(block):
                raise HubnessError(
                    "several bank queries have the same best items; say which to drop with at="
                )
        return replace(self, ids=self.ids[alive], scores=self.scores[alive])

    def _matches(self, ids: NDArray[np.int32], scores: Array) -> Int64:
        """Bank queries with these winners: with exactly these scores, or else as near as rounding comes."""
        seen = ids >= 0
        like = np.flatnonzero((self.ids == ids).all(axis=1))
        apart = np.abs(self.scores[like][:, seen] - scores[seen]).max(axis=1, initial=0)
        near = apart <= 1e-5 * max(1.0, float(np.abs(scores[seen]).max()))
        return np.asarray(like[apart == 0] if (apart == 0).any() else like[near], np.int64)

    def extend(self, columns: Array) -> ActivationSet:
        wide = np.concatenate([self.scores, columns.astype(self.scores.dtype)], axis=1)
        numbers = np.arange(self.items, self.items + columns.shape[1], dtype=np.int32)
        ids = np.concatenate([self.ids, np.broadcast_to(numbers, columns.shape)], axis=1)
        # A stable sort: old items come first, so they stay ahead of equal new ones.
        order = np.argsort(-wide, axis=1, kind="stable")[:, : self.k]
        lost = self.stale_rows
        new_ids, new_scores = (np.take_along_axis(a, order, axis=1) for a in (ids, wide))
        new_ids[lost], new_scores[lost] = -1, -np.inf
        return ActivationSet(self.k, self.items + columns.shape[1], new_ids, new_scores)

    def select(self, mask: Bool) -> ActivationSet:
        position = np.where(mask, np.cumsum(mask) - 1, -1).astype(np.int32)
        ids = np.where(self.ids >= 0, position[self.ids], np.int32(-1))
        scores = np.where(ids >= 0, self.scores, -np.inf).astype(self.scores.dtype)
        order = np.argsort(-scores, axis=1, kind="stable")
        ids, scores = (np.take_along_axis(a, order, axis=1) for a in (ids, scores))
        return ActivationSet(self.k, int(mask.sum()), ids, scores)

    def refit(self, at: Int64, columns: Array) -> ActivationSet:
        return self

    def refit_rows(self, at: Int64, block: SimilarityBlock) -> ActivationSet:
        ids, scores = self.ids.copy(), self.scores.copy()
        ids[at], scores[at] = best_of(block, self.k)
        return replace(self, ids=ids, scores=scores)

    def arrays(self) -> dict[str, Array]:
        return {"ids": self.ids, "scores": self.scores}


def best_of(block: SimilarityBlock, k: int) -> tuple[NDArray[np.int32], Array]:
    """The k best items of each row and their similarities, filled up with -1 and -inf."""
    if k == 1:
        return block.tops[:, None].astype(np.int32), block.best[:, None]
    best = topk_ids(block.values, k)
    values = np.take_along_axis(block.values, best, axis=1)
    missing = ((0, 0), (0, k - best.shape[1]))
    ids = np.pad(best.astype(np.int32), missing, constant_values=-1)
    return ids, np.pad(values, missing, constant_values=-np.inf)


class ActivationSetBuilder:
    """Collects the winners of each block."""

    def __init__(self, k: int) -> None:
        self._k = k
        self._items = 0
        self._found: list[tuple[NDArray[np.int32], Array]] = []

    @property
    def key(self) -> tuple[object, ...]:
        return ("winners", self._k)

    def update(self, block: SimilarityBlock) -> None:
        self._items = block.values.shape[1]
        self._found.append(best_of(block, self._k))

    def build(self) -> ActivationSet:
        ids, scores = (np.concatenate(arrays) for arrays in zip(*self._found, strict=True))
        return ActivationSet(self._k, self._items, ids, scores)
