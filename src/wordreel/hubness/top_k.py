"""The largest bank similarities of each gallery item, for the means of k nearest queries.

Cost of a block: one partition, O(rows · items), for the first few hundred rows; after
that one comparison per similarity, for the few that still reach a list.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wordreel.hubness.blocks import SimilarityBlock
from wordreel.hubness.statistic import ItemStatistic
from wordreel.types import Array, Float64, Int64

FOLD = 256  # rows gathered before the lists are merged


@dataclass(frozen=True)
class TopK(ItemStatistic):
    """`values [items, k]`, largest first, -inf past the end of a bank of fewer than k queries."""

    k: int
    size: int
    values: Array

    def mean(self) -> Float64:
        """The mean of the k largest, of all where the bank is smaller than k, `[items]`."""
        top = self.values[:, : min(self.k, self.size)]
        return np.asarray(top.mean(axis=1, dtype=np.float64))

    def merge(self, other: TopK) -> TopK:
        values = np.concatenate([self.values, other.values], axis=1)
        return TopK(self.k, self.size + other.size, _largest_first(values)[:, : self.k])


def _largest_first(values: Array) -> Array:
    return np.asarray(-np.sort(-values, axis=1))


class TopKBuilder:
    """Gathers whole rows until the lists are full; of later rows only what is above the least of its list.

    Later rows wait until they are as many as the lists hold: each merge then covers about twice the rows of
    the one before.
    """

    def __init__(self, k: int) -> None:
        self._k = k
        self._size = 0
        self._kept: Array | None = None  # [items, <= k]
        self._bound: Array | None = None  # [items], once the lists are full
        self._waiting: list[Array] = []  # whole rows, transposed
        self._hits: list[tuple[Int64, Array]] = []  # items and values
        self._rows = self._found = 0

    @property
    def key(self) -> tuple[object, ...]:
        return ("best", self._k)

    def update(self, block: SimilarityBlock) -> None:
        self._size += len(block)
        self._rows += len(block)
        items = block.values.shape[1]
        if self._bound is None:
            self._waiting.append(block.values.T.copy())
        else:
            at = np.flatnonzero(block.values > self._bound)
            self._hits.append((at % items if len(block) > 1 else at, block.values.ravel()[at]))
            self._found += len(at)
        if self._rows >= max(FOLD, self._k) if self._bound is None else self._found >= self._k * items:
            self._fold()

    def _fold(self) -> None:
        lists = [] if self._kept is None else [self._kept]
        hits = [self._columns()] if self._hits else []
        values = np.concatenate(lists + self._waiting + hits, axis=1)
        self._waiting, self._hits, self._rows, self._found = [], [], 0, 0
        surplus = values.shape[1] - self._k
        if surplus > 0:
            values = np.partition(values, surplus, axis=1)[:, surplus:]
        self._kept = values
        self._bound = values.min(axis=1) if surplus >= 0 else None

    def _columns(self) -> Array:
        """The waiting hits as `[items, most hits of one item]`, -inf where an item has fewer."""
        assert self._bound is not None  # noqa: S101 - there are hits only beside a bound
        items, values = (np.concatenate(arrays) for arrays in zip(*self._hits, strict=True))
        order = _by_item(items)
        counts = np.bincount(items, minlength=len(self._bound))
        first = np.cumsum(counts) - counts
        out = np.full((len(counts), counts.max(initial=0)), -np.inf, values.dtype)
        ranked = items[order]
        out[ranked, np.arange(len(ranked)) - first[ranked]] = values[order]
        return out

    def build(self) -> TopK:
        if self._waiting or self._bound is not None:
            self._fold()
        assert self._kept is not None  # noqa: S101 - a builder saw a block
        short = self._k - self._kept.shape[1]
        values = np.pad(_largest_first(self._kept), ((0, 0), (0, short)), constant_values=-np.inf)
        return TopK(self._k, self._size, values)


def _by_item(items: Int64) -> Int64:
    """Where the hits of the first item are, then those of the second, and so on.

    NumPy counts numbers of 16 bits instead of comparing them, which is several times as fast.
    """
    order = np.argsort(items.astype(np.uint16), kind="stable")
    high = (items >> 16).astype(np.uint16)
    return order if not high.any() else order[np.argsort(high[order], kind="stable")]
