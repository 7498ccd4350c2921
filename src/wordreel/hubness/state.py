"""What a method keeps of its bank: O(gallery) numbers that can be added to, merged, cut and saved.

A state is frozen: every change gives a new one. Changes of the bank (`add`, `drop`, `merge`) and of the
gallery (`extend`, `remove`) give what a fit from the start would give. Where that needs similarities that
were not stored, `stale` names the gallery items and `stale_rows` the bank queries to give again, or a `refit`
callback brings them at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from wordreel.errors import HubnessError
from wordreel.hubness.accumulate import accumulate
from wordreel.hubness.blocks import Similarities, as_source, check, matrix, widen
from wordreel.hubness.statistic import Statistic
from wordreel.types import Array, Bool, Float32, Float64, Int64

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
        """False where something is approximate: compressed columns, or a Sinkhorn gallery that changed."""
        return all(
            getattr(p, "exact", True) for bank in self.banks.values() for p in bank.statistics.values()
        )

    @cached_property
    def stale(self) -> Bool:
        """`[items]`: gallery items whose numbers were lost; give them to `refit_columns`."""
        lost = np.zeros(self.items, bool)
        for bank in self.banks.values():
            for statistic in bank.statistics.values():
                lost |= statistic.stale
        return lost

    def stale_rows(self, bank: str = QUERIES) -> Int64:
        """Bank queries whose winners were lost; give their rows to `refit_rows`."""
        stale = [statistic.stale_rows for statistic in self.banks[bank].statistics.values()]
        lost = np.concatenate(stale) if stale else np.empty(0, np.int64)
        return np.unique(lost) if len(lost) else lost  # `unique` imports numpy.ma, which takes a while

    @cached_property
    def offset(self) -> Float64:
        """`[items]`: the method ranks by s(q, v) − offset[v]. Only for foldable methods."""
        if not self.method.foldable:
            raise HubnessError(
                f"{self.method.name!r} cannot be written as one number per item; score rows with apply()"
            )
        self.check_fresh()
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

    def check_fresh(self) -> None:
        """Refuse to answer from lost numbers."""
        if self.stale.any():
            raise HubnessError(
                f"{int(self.stale.sum())} gallery items are stale after queries were dropped; pass their "
                "bank similarities to refit_columns(numpy.flatnonzero(state.stale), blocks)"
            )
        for name in self.banks:
            if len(self.stale_rows(name)):
                raise HubnessError(
                    f"{len(self.stale_rows(name))} queries of bank {name!r} lost their best item when it was "
                    "removed; pass their rows to refit_rows(state.stale_rows(), rows)"
                )

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

    def drop(
        self,
        rows: Array,
        at: Int64 | None = None,
        bank: str = QUERIES,
        refit: Callable[[Int64], Similarities] | None = None,
    ) -> State:
        """Without some queries, given the rows they were fitted with; the others keep their order.

        `at` are their positions in the bank; gated methods need them where two queries look the same.
        `refit(columns)` returns the similarities `[remaining bank, len(columns)]` of items that went stale.
        """
        self._changeable("drop queries from")
        rows = matrix(rows, "the rows to drop", self.items)
        if len(rows) == 0:
            return self
        old = self._bank(bank)
        if len(rows) >= old.size:
            raise HubnessError(f"dropping {len(rows)} of {old.size} queries leaves no bank; fit a new one")
        if at is not None:
            at = np.asarray(at, np.int64)
            if len(np.unique(at)) != len(rows) or at.min() < 0 or at.max() >= old.size:
                raise HubnessError(f"`at` must name {len(rows)} different queries of {old.size}")
        block = check(rows)
        left = {name: statistic.drop(block, at) for name, statistic in old.statistics.items()}
        state = self._with(bank, BankState(old.size - len(rows), left))
        lost = np.flatnonzero(state.stale)
        return state.refit_columns(lost, refit(lost), bank) if refit is not None and len(lost) else state

    def extend(self, columns: Similarities, gallery: Similarities | None = None) -> State:
        """With new gallery items at the end, given `[bank, new]` similarities, in the bank's order.

        Methods with two banks take those of the second bank in `gallery`. Cost O(bank · new).
        """
        given = {QUERIES: columns} | ({} if gallery is None else {GALLERY: gallery})
        if set(given) != set(self.banks):
            raise HubnessError(f"{self.method.name!r} needs the new items' similarities to {set(self.banks)}")
        state, new = self, 0
        for name, blocks in given.items():
            block = self._column_block(blocks, name, None)
            if new and block.shape[1] != new:
                raise HubnessError(f"one bank sees {new} new items, the other {block.shape[1]}")
            new = block.shape[1]
            statistics = {
                key: statistic.extend(block) for key, statistic in self.banks[name].statistics.items()
            }
            state = state._with(name, BankState(self.banks[name].size, statistics))
        return replace(state, items=self.items + new)

    def remove(self, columns: Int64, refit: Callable[[Int64], Array] | None = None) -> State:
        """Without some gallery items; the others keep their order.

        `refit(bank_rows)` returns the rows `[len(bank_rows), remaining items]` of bank queries that lost
        their best item (gated methods only).
        """
        mask = np.ones(self.items, bool)
        mask[self._columns(columns)] = False
        if not mask.any():
            raise HubnessError("removing every item leaves no gallery; fit a new state")
        banks = {
            name: BankState(
                bank.size, {key: statistic.select(mask) for key, statistic in bank.statistics.items()}
            )
            for name, bank in self.banks.items()
        }
        state = State(self.method, int(mask.sum()), banks)
        lost = state.stale_rows()
        return state.refit_rows(lost, refit(lost)) if refit is not None and len(lost) else state

    def refit_columns(self, columns: Int64, blocks: Similarities, bank: str = QUERIES) -> State:
        """Fit some gallery items again from `[bank, len(columns)]` similarities."""
        at = self._columns(columns)
        block = self._column_block(blocks, bank, len(at))
        old = self._bank(bank)
        return self._with(
            bank,
            BankState(
                old.size, {name: statistic.refit(at, block) for name, statistic in old.statistics.items()}
            ),
        )

    def refit_rows(self, at: Int64, rows: Array, bank: str = QUERIES) -> State:
        """Find the best items of bank queries `at` again from their rows `[len(at), items]`."""
        rows = matrix(rows, "the rows", self.items)
        if len(rows) != len(at):
            raise HubnessError(f"{len(rows)} rows were given for {len(at)} bank queries")
        old = self._bank(bank)
        statistics = {
            name: statistic.refit_rows(at, check(rows)) for name, statistic in old.statistics.items()
        }
        return self._with(bank, BankState(old.size, statistics))

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
                "fit the new bank from the start"
            )

    def _bank(self, name: str) -> BankState:
        if name not in self.banks:
            raise HubnessError(f"{self.method.name!r} has no bank {name!r}, only {sorted(self.banks)}")
        return self.banks[name]

    def _with(self, name: str, bank: BankState) -> State:
        return replace(self, banks={**self.banks, name: bank})

    def _columns(self, columns: Int64) -> Int64:
        at = np.atleast_1d(np.asarray(columns))
        if at.size and (at.dtype.kind not in "iu" or at.min() < 0 or at.max() >= self.items):
            raise HubnessError(f"columns must be item numbers from 0 to {self.items - 1}")
        return at.astype(np.int64)

    def _column_block(self, blocks: Similarities, bank: str, columns: int | None) -> Array:
        source = as_source(blocks)
        rows = source.read(0, source.shape[0]) if source is not None else np.concatenate(list(blocks))  # type: ignore[arg-type]
        rows = matrix(rows, "the block of columns", columns)
        if len(rows) != self._bank(bank).size:
            raise HubnessError(
                f"the block has {len(rows)} rows but bank {bank!r} has {self._bank(bank).size} queries"
            )
        check(rows)
        return widen(rows)
