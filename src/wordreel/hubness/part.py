"""What a state is made of: one part per statistic of the bank, each O(gallery) or O(bank) in size.

A part is frozen; every change gives a new one. A builder gathers a part from a stream of blocks.
"""

from __future__ import annotations

from typing import Any, Protocol, Self

import numpy as np

from wordreel.hubness.blocks import Array, Block, Ids
from wordreel.types import Bool


class Part(Protocol):
    """One statistic of a bank of `size` queries over a gallery of `items` items."""

    @property
    def items(self) -> int: ...

    @property
    def stale(self) -> Bool:
        """`[items]`: columns whose number was lost by a drop."""
        ...

    @property
    def stale_rows(self) -> Ids:
        """Bank queries whose entry was lost by a removal."""
        ...

    def merge(self, other: Any) -> Part:
        """The part of both banks together, `other`'s queries last."""
        ...

    def drop(self, block: Block, at: Ids | None) -> Part:
        """Without some queries of the bank, given their rows and, if known, their places."""
        ...

    def extend(self, columns: Array) -> Part:
        """With new gallery items at the end, given their similarities `[bank, new]`."""
        ...

    def keep(self, wanted: Bool) -> Part:
        """Only some gallery items."""
        ...

    def refit(self, at: Ids, columns: Array) -> Part:
        """Columns `at` from the start, given `[bank, len(at)]`."""
        ...

    def refit_rows(self, at: Ids, block: Block) -> Part:
        """Bank queries `at` from the start, given their rows."""
        ...

    def arrays(self) -> dict[str, Array]:
        """Everything but the parameters, for a file."""
        ...


class Builder(Protocol):
    """Gathers a part from blocks."""

    def take(self, block: Block) -> None: ...

    def part(self) -> Part: ...


class PerItem:
    """What parts have in common that keep numbers of items and none of single bank queries."""

    @property
    def stale_rows(self) -> Ids:
        return np.empty(0, np.int64)

    def refit_rows(self, at: Ids, block: Block) -> Self:
        return self


class Lasting(PerItem):
    """A part whose numbers no drop can lose."""

    @property
    def items(self) -> int:
        raise NotImplementedError

    @property
    def stale(self) -> Bool:
        return np.zeros(self.items, bool)
