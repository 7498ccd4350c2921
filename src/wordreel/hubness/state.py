"""What a method keeps of its bank: O(gallery) numbers that can be added to, merged, cut and saved.

A state is frozen: every change gives a new one. Queries that come (`add`, `merge`) and items that come and go
(`extend`, `remove`) give what a fit from the start would give. A bank that loses queries is fitted again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from wordreel.errors import HubnessError
from wordreel.hubness.accumulate import accumulate
from wordreel.hubness.blocks import Similarities
from wordreel.hubness.statistic import Statistic
from wordreel.types import Bool, Float32, Float64, Int64

if TYPE_CHECKING:
    from wordreel.hubness.method import Method

QUERIES = "queries"
GALLERY = "gallery"


@dataclass(frozen=True, eq=False)
class BankState:
    """The statistics of one bank of `size` queries (of gallery items, in the second bank of dual methods)."""

    size: int
    statistics: dict[str, Statistic]


@dataclass(frozen=True, eq=False)
class State:
    """A fitted `method` over a gallery of `items` items."""

    method: Method
    items: int
    banks: dict[str, BankState]

    @property
    def bank_size(self) -> int:
        return self.banks[QUERIES].size

    @property
    def exact(self) -> bool:
        """False where columns are compressed, so that ranks are estimates."""
        return all(
            getattr(statistic, "exact", True)
            for bank in self.banks.values()
            for statistic in bank.statistics.values()
        )

    @cached_property
    def offset(self) -> Float64:
        """`[items]`: the method ranks by s(q, v) − offset[v]. Only for foldable methods."""
        if not self.method.foldable:
            raise HubnessError(
                f"{self.method.name!r} cannot be written as one number per item; score rows with apply()"
            )
        return np.asarray(self.method.offset(self), np.float64)

    def bias(self) -> Float32:
        """`[items]` float32: `offset` less its mean, to fold into an index. The ranking is the same."""
        if self.method.transductive:
            raise HubnessError(
                f"{self.method.name!r} is transductive: it uses all test queries, which an index that "
                "answers one query at a time does not have; fold a bank of other queries ('is')"
            )
        return np.asarray(self.offset - self.offset.mean(), np.float32)

    @property
    def activation(self) -> Bool:
        """`[items]`: whether an item is among the k best of any bank query (gated methods only)."""
        return self.method.activation(self)

    def add(self, rows: Similarities, bank: str = QUERIES) -> State:
        """With more queries in the bank, at its end. Cost O(rows · items)."""
        self._changeable("add queries to")
        new = accumulate(rows, lambda: self.method.builders(bank), self.items)
        old = self._bank(bank)
        statistics = {
            name: statistic.merge(new.statistics[name]) for name, statistic in old.statistics.items()
        }
        return self._with(bank, BankState(old.size + new.size, statistics))

    def merge(self, other: State) -> State:
        """The state of both banks together, over the same gallery."""
        self._changeable("merge")
        if (self.method, self.items) != (other.method, other.items):
            raise HubnessError(
                f"states of {self.method} over {self.items} items and {other.method} over {other.items} "
                "items cannot be merged; fit both with one method over one gallery"
            )
        state = self
        for name, bank in other.banks.items():
            mine = self.banks[name]
            statistics = {
                key: statistic.merge(bank.statistics[key]) for key, statistic in mine.statistics.items()
            }
            state = state._with(name, BankState(mine.size + bank.size, statistics))
        return state

    def extend(self, columns: Similarities, gallery: Similarities | None = None) -> State:
        """With new gallery items at the end, given `[bank, new]` similarities, in the bank's order.

        Methods with two banks take those of the second bank in `gallery`. Cost O(bank · new).
        """
        self._changeable("add items to")
        given = {QUERIES: columns} | ({} if gallery is None else {GALLERY: gallery})
        if set(given) != set(self.banks):
            raise HubnessError(f"{self.method.name!r} needs the new items' similarities to {set(self.banks)}")
        banks, new = {}, None
        for name, blocks in given.items():
            fresh = accumulate(blocks, partial(self.method.builders, name), new)
            new, bank = fresh.items, self.banks[name]
            if fresh.size != bank.size:
                raise HubnessError(
                    f"the block has {fresh.size} rows but bank {name!r} has {bank.size} queries"
                )
            statistics = {
                key: statistic.extend(fresh.statistics[key]) for key, statistic in bank.statistics.items()
            }
            banks[name] = BankState(bank.size, statistics)
        return State(self.method, self.items + (new or 0), banks)

    def remove(self, columns: Int64) -> State:
        """Without some gallery items; the others keep their order.

        Raises:
            HubnessError: Fit the bank again: no item would be left, the numbers depend on all items, or a
                bank query of a gated method loses its best item.
        """
        self._changeable("remove items from")
        at = np.atleast_1d(np.asarray(columns))
        if at.size and (at.dtype.kind not in "iu" or at.min() < 0 or at.max() >= self.items):
            raise HubnessError(f"columns must be item numbers from 0 to {self.items - 1}")
        mask = np.ones(self.items, bool)
        mask[at.astype(np.int64)] = False
        if not mask.any():
            raise HubnessError("removing every item leaves no gallery; fit a new state")
        banks = {
            name: BankState(
                bank.size, {key: statistic.select(mask) for key, statistic in bank.statistics.items()}
            )
            for name, bank in self.banks.items()
        }
        return State(self.method, int(mask.sum()), banks)

    def save(self, path: Path) -> None:
        """Write one safetensors file whose header holds the method, its parameters and the sizes."""
        from wordreel.hubness.state_file import save_state

        save_state(self, path)

    @staticmethod
    def load(path: Path) -> State:
        """Read what `save` wrote. Nothing in the file is executed."""
        from wordreel.hubness.state_file import load_state

        return load_state(path)

    def _changeable(self, what: str) -> None:
        if not self.method.streaming:
            raise HubnessError(
                f"cannot {what} a {self.method.name!r} state: its numbers depend on the whole bank at once; "
                "fit again from the start"
            )

    def _bank(self, name: str) -> BankState:
        if name not in self.banks:
            raise HubnessError(f"{self.method.name!r} has no bank {name!r}, only {sorted(self.banks)}")
        return self.banks[name]

    def _with(self, name: str, bank: BankState) -> State:
        return replace(self, banks={**self.banks, name: bank})
