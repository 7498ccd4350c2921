"""The largest bank similarities of each gallery item, for the means of k nearest queries.

Each column keeps its `k + reserve` largest values and a floor: everything it does not keep is at most the
floor. Dropping a stored value eats into the reserve; when fewer than k are left, the column is stale until
it is fitted again. Cost of a block: one partition, O(rows · items), for the first few hundred rows; after
that one comparison per similarity, for the few that still reach a list.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from wordreel.hubness.blocks import SimilarityBlock, check, cut
from wordreel.hubness.statistic import ItemStatistic
from wordreel.types import Array, Bool, Float64, Int64

FOLD = 256  # rows gathered before the lists are merged


@dataclass(frozen=True)
class TopK(ItemStatistic):
    """`values [items, k + reserve]`, largest first, -inf past the end; `floor [items]`, -inf if complete."""

    k: int
    size: int
    values: Array
    floor: Array

    @property
    def items(self) -> int:
        return len(self.values)

    @property
    def held(self) -> Int64:
        return np.asarray((self.values > -np.inf).sum(axis=1))

    @property
    def stale(self) -> Bool:
        return np.asarray(self.held < min(self.k, self.size))

    def mean(self) -> Float64:
        """The mean of the k largest, of all where the bank is smaller than k, `[items]`."""
        top = self.values[:, : min(self.k, self.size)]
        # Stale columns must not be averaged; the state refuses them before.
        return np.asarray(np.where(top > -np.inf, top, 0).mean(axis=1, dtype=np.float64))

    def merge(self, other: TopK) -> TopK:
        floor = np.maximum(self.floor, other.floor)
        values = np.concatenate([self.values, other.values], axis=1)
        return _trim(self.k, self.size + other.size, values, floor, self.values.shape[1])

    def drop(self, block: SimilarityBlock, at: Int64 | None) -> TopK:
        values, floor = self.values.copy(), self.floor
        everywhere = np.arange(self.items)
        for row in block.values:
            near = 1e-6 * np.maximum(1, np.abs(row))
            apart = np.abs(values - row[:, None])
            position = apart.argmin(axis=1)
            hit = apart[everywhere, position] <= near
            values[everywhere[hit], position[hit]] = -np.inf
            # Neither stored nor below the floor: it was not fitted with this value, so nothing is sure.
            values[~hit & (row > floor + near)] = -np.inf
        left = self.size - len(block)
        # A list that holds all that is left has nothing below its floor.
        complete = (values > -np.inf).sum(axis=1) >= left
        floor = np.where(complete, np.asarray(-np.inf, floor.dtype), floor)
        return replace(self, size=left, values=-np.sort(-values, axis=1), floor=floor)

    def extend(self, columns: Array) -> TopK:
        new = self._fresh(columns)
        values = np.concatenate([self.values, new.values])
        return replace(self, values=values, floor=np.concatenate([self.floor, new.floor]))

    def select(self, mask: Bool) -> TopK:
        return replace(self, values=self.values[mask], floor=self.floor[mask])

    def refit(self, at: Int64, columns: Array) -> TopK:
        new = self._fresh(columns)
        values, floor = self.values.copy(), self.floor.copy()
        values[at], floor[at] = new.values, new.floor
        return replace(self, values=values, floor=floor)

    def arrays(self) -> dict[str, Array]:
        return {"values": self.values, "floor": self.floor}

    def _fresh(self, columns: Array) -> TopK:
        builder = TopKBuilder(self.k, self.values.shape[1] - self.k)
        for piece in cut(columns):
            builder.update(check(piece))
        return builder.build()


def _trim(k: int, size: int, values: Array, floor: Array, width: int) -> TopK:
    """Sort candidates, forget those under the floor, keep `width` and raise the floor to what is left out."""
    values = -np.sort(-values, axis=1)
    values = np.where(values >= floor[:, None], values, np.asarray(-np.inf, values.dtype))
    if values.shape[1] > width:
        floor = np.maximum(floor, values[:, width])
    return TopK(k, size, np.ascontiguousarray(values[:, :width]), floor)


class TopKBuilder:
    """Gathers whole rows until the lists are full; of later rows only what is above the least of its list.

    Later rows wait until they are as many as the lists hold: each merge then covers about twice the rows of
    the one before.
    """

    def __init__(self, k: int, reserve: int) -> None:
        self._k, self._width = k, k + reserve
        self._size = 0
        self._kept: Array | None = None  # [items, <= width]
        self._floor: Array | None = None
        self._bound: Array | None = None  # [items], once the lists are full
        self._waiting: list[Array] = []  # whole rows, transposed
        self._hits: list[tuple[Int64, Array]] = []  # items and values
        self._rows = self._found = 0

    @property
    def key(self) -> tuple[object, ...]:
        return ("best", self._k, self._width)

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
        if (
            self._rows >= max(FOLD, self._width)
            if self._bound is None
            else self._found >= self._width * items
        ):
            self._fold()

    def _fold(self) -> None:
        lists = [] if self._kept is None else [self._kept]
        hits = [self._columns()] if self._hits else []
        values = np.concatenate(lists + self._waiting + hits, axis=1)
        self._waiting, self._hits, self._rows, self._found = [], [], 0, 0
        if self._floor is None:
            self._floor = np.full(len(values), -np.inf, values.dtype)
        if self._bound is not None:  # what did not reach the bound was left out
            self._floor = np.maximum(self._floor, self._bound)
        surplus = values.shape[1] - self._width
        if surplus > 0:
            values = np.partition(values, surplus - 1, axis=1)
            self._floor = np.maximum(self._floor, values[:, surplus - 1])
            values = values[:, surplus:]
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
        assert self._floor is not None  # noqa: S101
        short = self._width - self._kept.shape[1]
        values = np.pad(self._kept, ((0, 0), (0, short)), constant_values=-np.inf)
        return _trim(self._k, self._size, values, self._floor, self._width)


def _by_item(items: Int64) -> Int64:
    """Where the hits of the first item are, then those of the second, and so on.

    NumPy counts numbers of 16 bits instead of comparing them, which is several times as fast.
    """
    order = np.argsort(items.astype(np.uint16), kind="stable")
    high = (items >> 16).astype(np.uint16)
    return order if not high.any() else order[np.argsort(high[order], kind="stable")]
