"""What a state consists of: statistics of the bank, each O(gallery) or O(bank) in size.

A statistic is frozen; every change returns a new one. A builder accumulates one from a stream of blocks.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, Protocol, Self

import numpy as np

from wordreel.hubness.blocks import SimilarityBlock
from wordreel.types import Array, Bool


class Statistic(Protocol):
    """One statistic of a bank of `size` queries over a gallery of `items` items."""

    @property
    def items(self) -> int: ...

    def merge(self, other: Any) -> Statistic:
        """Return the statistic of both banks together, `other`'s queries last."""
        ...

    def extend(self, other: Any) -> Statistic:
        """Return the statistic of both galleries together, `other`'s items last."""
        ...

    def select(self, mask: Bool) -> Statistic:
        """Keep only the gallery items of `mask [items]`.

        Raises:
            HubnessError: The others have taken a bank query's best item with them.
        """
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
    """Base of dataclasses whose arrays hold numbers for each item."""

    @property
    def items(self) -> int:
        return len(next(iter(self.arrays().values())))

    def extend(self, other: Self) -> Self:
        theirs = other.arrays()
        return self._with({name: np.concatenate([own, theirs[name]]) for name, own in self.arrays().items()})

    def select(self, mask: Bool) -> Self:
        return self._with({name: own[mask] for name, own in self.arrays().items()})

    def arrays(self) -> dict[str, Array]:
        values = ((field.name, getattr(self, field.name)) for field in fields(self))  # type: ignore[arg-type]
        return {name: value for name, value in values if isinstance(value, np.ndarray)}

    def _with(self, arrays: dict[str, Array]) -> Self:
        changed: Self = replace(self, **arrays)  # type: ignore[type-var]
        return changed
