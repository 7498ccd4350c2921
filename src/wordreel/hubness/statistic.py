"""What a state consists of: statistics of the bank, each O(gallery) or O(bank) in size.

A statistic is frozen; every change returns a new one. A builder accumulates one from a stream of blocks.
"""

from __future__ import annotations

from typing import Any, Protocol, Self

import numpy as np

from wordreel.hubness.blocks import SimilarityBlock
from wordreel.types import Array, Bool, Int64


class Statistic(Protocol):
    """One statistic of a bank of `size` queries over a gallery of `items` items."""

    @property
    def items(self) -> int: ...

    @property
    def stale(self) -> Bool:
        """`[items]`: columns whose value a drop has lost."""
        ...

    @property
    def stale_rows(self) -> Int64:
        """Bank queries whose entry a removal has lost."""
        ...

    def merge(self, other: Any) -> Statistic:
        """The statistic of both banks together, `other`'s queries last."""
        ...

    def drop(self, block: SimilarityBlock, at: Int64 | None) -> Statistic:
        """Without some bank queries, given their rows and, if known, their positions."""
        ...

    def extend(self, columns: Array) -> Statistic:
        """With new gallery items at the end, given their similarities `[bank, new]`."""
        ...

    def select(self, mask: Bool) -> Statistic:
        """Only the gallery items of `mask [items]`."""
        ...

    def refit(self, at: Int64, columns: Array) -> Statistic:
        """Recompute columns `at`, given `[bank, len(at)]`."""
        ...

    def refit_rows(self, at: Int64, block: SimilarityBlock) -> Statistic:
        """Recompute bank queries `at`, given their rows."""
        ...

    def arrays(self) -> dict[str, Array]:
        """Everything but the parameters, for a file."""
        ...


class StatisticBuilder(Protocol):
    """Accumulates a statistic from blocks."""

    @property
    def key(self) -> tuple[object, ...]:
        """The statistic and its parameters: builders with equal keys build the same statistic."""
        ...

    def update(self, block: SimilarityBlock) -> None: ...

    def build(self) -> Statistic: ...


class ItemStatistic:
    """Base of statistics that hold numbers per item and none per bank query."""

    @property
    def stale_rows(self) -> Int64:
        return np.empty(0, np.int64)

    def refit_rows(self, at: Int64, block: SimilarityBlock) -> Self:
        return self


class DurableStatistic(ItemStatistic):
    """Base of statistics that no drop can make stale."""

    @property
    def items(self) -> int:
        raise NotImplementedError

    @property
    def stale(self) -> Bool:
        return np.zeros(self.items, bool)
