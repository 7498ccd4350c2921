"""The mean bank similarity of each gallery item, as a float64 sum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wordreel.hubness.blocks import SimilarityBlock
from wordreel.hubness.statistic import ItemStatistic
from wordreel.types import Float64


@dataclass(frozen=True)
class ColumnMean(ItemStatistic):
    """`total [items]` over `size` queries."""

    size: int
    total: Float64

    def mean(self) -> Float64:
        return self.total / self.size

    def merge(self, other: ColumnMean) -> ColumnMean:
        return ColumnMean(self.size + other.size, self.total + other.total)


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
