"""The mean bank similarity of each gallery item, as a float64 sum."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from wordreel.hubness.blocks import SimilarityBlock
from wordreel.hubness.statistic import DurableStatistic
from wordreel.types import Array, Bool, Float64, Int64


@dataclass(frozen=True)
class ColumnMean(DurableStatistic):
    """`total [items]` over `size` queries."""

    size: int
    total: Float64

    @property
    def items(self) -> int:
        return len(self.total)

    def mean(self) -> Float64:
        return self.total / self.size

    def merge(self, other: ColumnMean) -> ColumnMean:
        return ColumnMean(self.size + other.size, self.total + other.total)

    def drop(self, block: SimilarityBlock, at: Int64 | None) -> ColumnMean:
        return ColumnMean(self.size - len(block), self.total - block.values.sum(axis=0, dtype=np.float64))

    def extend(self, columns: Array) -> ColumnMean:
        return replace(self, total=np.concatenate([self.total, columns.sum(axis=0, dtype=np.float64)]))

    def select(self, mask: Bool) -> ColumnMean:
        return replace(self, total=self.total[mask])

    def refit(self, at: Int64, columns: Array) -> ColumnMean:
        total = self.total.copy()
        total[at] = columns.sum(axis=0, dtype=np.float64)
        return replace(self, total=total)

    def arrays(self) -> dict[str, Array]:
        return {"total": self.total}


class ColumnMeanBuilder:
    """Adds up blocks."""

    def __init__(self) -> None:
        self._size = 0
        self._total: Float64 | None = None

    @property
    def key(self) -> tuple[object, ...]:
        return ("mean",)

    def update(self, block: SimilarityBlock) -> None:
        self._size += len(block)
        total = block.values.sum(axis=0, dtype=np.float64)
        self._total = total if self._total is None else self._total + total

    def build(self) -> ColumnMean:
        assert self._total is not None  # noqa: S101 - a builder saw a block
        return ColumnMean(self._size, self._total)
