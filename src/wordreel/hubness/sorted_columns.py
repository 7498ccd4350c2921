"""Every bank similarity of every gallery item, sorted: O(gallery · bank) memory, only for GC.

With `levels` each column is reduced to that many evenly spaced order statistics; ranks are then estimates
within bank/levels ranks, and the state says that it is not exact.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from wordreel.errors import HubnessError
from wordreel.hubness.blocks import SimilarityBlock
from wordreel.hubness.statistic import ItemStatistic
from wordreel.types import Array, Float64, Int64


@dataclass(frozen=True)
class SortedColumns(ItemStatistic):
    """`sorted [items, size]`, or `[items, levels]`, ascending."""

    size: int
    sorted: Array
    levels: int | None = None

    @property
    def exact(self) -> bool:
        return bool(self.sorted.shape[1] == self.size)

    def greater(self, rows: Array) -> Float64:
        """How many bank similarities of each item exceed `rows [queries, items]`, by bisection."""
        columns = self.sorted if rows.dtype == self.sorted.dtype else self._wide
        rows = rows.astype(columns.dtype, copy=False)
        below = _bisect(columns, rows) if len(rows) < 8 else _search(columns, rows)
        width = columns.shape[1]
        return np.asarray((width - below) * (self.size / width), np.float64)

    @cached_property
    def _wide(self) -> Float64:
        return self.sorted.astype(np.float64)

    def merge(self, other: SortedColumns) -> SortedColumns:
        self._must_be_exact()
        other._must_be_exact()
        both = np.concatenate([self.sorted, other.sorted], axis=1)
        return compress(SortedColumns(self.size + other.size, np.sort(both, axis=1), self.levels))

    def extend(self, other: SortedColumns) -> SortedColumns:
        return super().extend(compress(replace(other, levels=self.levels)))

    def _must_be_exact(self) -> None:
        if not self.exact:
            raise HubnessError("compressed columns cannot change; fit the whole bank again")


def _search(columns: Array, rows: Array) -> Int64:
    """How many values of each column are at most that of each row: a search per column."""
    below = np.empty(rows.shape, np.int64)
    for item, column in enumerate(columns):
        below[:, item] = np.searchsorted(column, rows[:, item], side="right")
    return below


def _bisect(columns: Array, rows: Array) -> Int64:
    """The same for few rows, halving the ranges of all columns at once."""
    width = columns.shape[1]
    low, high = np.zeros(rows.shape, np.int64), np.full(rows.shape, width, np.int64)
    flat, start = columns.ravel(), np.arange(len(columns)) * width
    for _ in range(width.bit_length()):
        middle = (low + high) // 2
        inside = low < high
        at_most = inside & (flat[start + np.minimum(middle, width - 1)] <= rows)
        low = np.where(at_most, middle + 1, low)
        high = np.where(inside & ~at_most, middle, high)
    return low


def compress(columns: SortedColumns) -> SortedColumns:
    """Keep `levels` order statistics of each column, those in the middle of equal shares of the bank."""
    if columns.levels is None or columns.levels >= columns.size:
        return columns
    positions = ((np.arange(columns.levels) + 0.5) * columns.size / columns.levels).astype(int)
    return replace(columns, sorted=np.ascontiguousarray(columns.sorted[:, positions]))


class SortedColumnsBuilder:
    """Keeps everything it sees; sorting waits for the end."""

    def __init__(self) -> None:
        self._rows: list[Array] = []

    @property
    def key(self) -> tuple[object, ...]:
        return ("columns",)

    def update(self, block: SimilarityBlock) -> None:
        self._rows.append(block.values.copy())

    def build(self) -> SortedColumns:
        rows = np.concatenate(self._rows)
        self._rows = []
        return SortedColumns(len(rows), np.sort(rows.T, axis=1))
