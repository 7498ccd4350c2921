"""The k best gallery items of each bank query, from which the activation set follows.

    A = ∪ⱼ top-kᵥ s(bⱼ, v)

Equal similarities go to the item with the lower number. Each bank query's best items are stored, not one
bit per item, O(bank · k): so a new item takes exactly the queries it wins. An item that has won a query
cannot be removed, because nothing says which item comes next: fit again.
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
    def counts(self) -> Int64:
        """How many bank queries have each item among their k best, `[items]`."""
        return np.bincount(self.ids[self.ids >= 0], minlength=self.items)

    def merge(self, other: ActivationSet) -> ActivationSet:
        ids = np.concatenate([self.ids, other.ids])
        return replace(self, ids=ids, scores=np.concatenate([self.scores, other.scores]))

    def extend(self, other: ActivationSet) -> ActivationSet:
        scores = np.concatenate([self.scores, other.scores], axis=1)
        theirs = np.where(other.ids >= 0, other.ids + np.int32(self.items), np.int32(-1))
        ids = np.concatenate([self.ids, theirs], axis=1)
        # A stable sort: old items come first, so they stay ahead of equal new ones.
        order = np.argsort(-scores, axis=1, kind="stable")[:, : self.k]
        ids, scores = (np.take_along_axis(a, order, axis=1) for a in (ids, scores))
        return ActivationSet(self.k, self.items + other.items, ids, scores)

    def select(self, mask: Bool) -> ActivationSet:
        if not mask[self.ids[self.ids >= 0]].all():
            raise HubnessError("a removed item is the best of a bank query; fit the bank again")
        position = np.where(mask, np.cumsum(mask) - 1, -1).astype(np.int32)
        ids = np.where(self.ids >= 0, position[self.ids], np.int32(-1))
        return replace(self, items=int(mask.sum()), ids=ids)

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
