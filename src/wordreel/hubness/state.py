"""What a method keeps of its bank: O(gallery) numbers that can be added to, merged, cut and saved.

A state is frozen: every change gives a new one. Queries that come (`add`, `merge`) and items that come and go
(`extend`, `remove`) give what a fit from the start would give. A bank that loses queries is fitted again.

In a file a state is safetensors: arrays named `bank/statistic/field`, and a JSON header with the method and
the sizes. No pickles. What a caller stores beside the state is `notes/of/name`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from wordreel.errors import HubnessError
from wordreel.hubness.bank_statistics import Statistic
from wordreel.hubness.blocks import Similarities
from wordreel.types import Array, Bool, Float32, Float64, Int64
from wordreel.util.atomic import atomic_write
from wordreel.util.checksum import array_checksum

if TYPE_CHECKING:
    from wordreel.hubness.method import Method

S = TypeVar("S")

QUERIES = "queries"
GALLERY = "gallery"
FORMAT = 2  # of files
EXTRA = "notes"


@dataclass(frozen=True, eq=False)
class BankState:
    """The statistics of one bank of `size` queries (of gallery items, in the second bank of dual methods)."""

    size: int
    statistics: dict[str, Statistic]

    def merge(self, other: BankState) -> BankState:
        """Return the statistics of both banks together, `other`'s queries last."""
        parts = {name: one.merge(other.statistics[name]) for name, one in self.statistics.items()}
        return BankState(self.size + other.size, parts)

    def with_items(self, change: Callable[[str, Statistic], Statistic]) -> BankState:
        """Return the statistics of the same bank over other items."""
        return BankState(self.size, {name: change(name, one) for name, one in self.statistics.items()})


@dataclass(frozen=True, eq=False)
class State:
    """A fitted `method` over a gallery of `items` items."""

    method: Method
    items: int
    banks: Mapping[str, BankState]

    def statistic(self, kind: type[S], bank: str = QUERIES) -> S:
        """Return the statistic of a kind; a method has at most one of each."""
        return next(one for one in self.banks[bank].statistics.values() if isinstance(one, kind))

    @property
    def bank_size(self) -> int:
        return self.banks[QUERIES].size

    @cached_property
    def offset(self) -> Float64:
        """`[items]`: the method ranks by s(q, v) − offset[v]. Only for foldable methods."""
        if not self.method.foldable:
            raise HubnessError(
                f"{self.method.name!r} cannot be written as one number per item; score rows with apply()"
            )
        return np.asarray(self.method.offset(self), np.float64)

    def bias(self) -> Float32:
        """Return `offset` less its mean, `[items]` float32, to fold into an index.

        The ranking is the same.
        """
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
        """Return the state with more queries in the bank, at its end. Cost O(rows · items)."""
        self._check_changeable("add queries to")
        if bank not in self.banks:
            raise HubnessError(f"{self.method.name!r} has no bank {bank!r}, only {sorted(self.banks)}")
        new, _ = self.method.fit_bank(rows, bank, self.items)
        return replace(self, banks={**self.banks, bank: self.banks[bank].merge(new)})

    def merge(self, other: State) -> State:
        """Return the state of both banks together, over the same gallery."""
        self._check_changeable("merge")
        if (self.method, self.items) != (other.method, other.items):
            raise HubnessError(
                f"states of {self.method} over {self.items} items and {other.method} over {other.items} "
                "items cannot be merged; fit both with one method over one gallery"
            )
        return replace(self, banks={name: bank.merge(other.banks[name]) for name, bank in self.banks.items()})

    def extend(self, columns: Similarities, gallery: Similarities | None = None) -> State:
        """Return the state with new gallery items at the end, given `[bank, new]` similarities in bank order.

        Methods with two banks take those of the second bank in `gallery`. Cost O(bank · new).
        """
        self._check_changeable("add items to")
        given = {QUERIES: columns} | ({} if gallery is None else {GALLERY: gallery})
        if set(given) != set(self.banks):
            raise HubnessError(f"{self.method.name!r} needs the new items' similarities to {set(self.banks)}")
        banks: dict[str, BankState] = {}
        count = None
        for name, blocks in given.items():
            new, count = self.method.fit_bank(blocks, name, count)
            old = self.banks[name]
            if new.size != old.size:
                raise HubnessError(f"the block has {new.size} rows but bank {name!r} has {old.size} queries")
            banks[name] = old.with_items(lambda key, one, new=new: one.extend(new.statistics[key]))  # type: ignore[misc]
        return State(self.method, self.items + (count or 0), banks)

    def remove(self, columns: Int64) -> State:
        """Return the state without some gallery items; the others keep their order.

        Raises:
            HubnessError: Fit the bank again: no item would be left, the numbers depend on all items, or a
                bank query of a gated method loses its best item.
        """
        self._check_changeable("remove items from")
        gone = np.atleast_1d(np.asarray(columns))
        if gone.size and (gone.dtype.kind not in "iu" or gone.min() < 0 or gone.max() >= self.items):
            raise HubnessError(f"columns must be item numbers from 0 to {self.items - 1}")
        mask = np.ones(self.items, bool)
        mask[gone.astype(np.int64)] = False
        if not mask.any():
            raise HubnessError("removing every item leaves no gallery; fit a new state")
        banks = {name: bank.with_items(lambda _, one: one.select(mask)) for name, bank in self.banks.items()}
        return State(self.method, int(mask.sum()), banks)

    def save(self, path: Path) -> None:
        """Write one safetensors file whose header holds the method, its parameters and the sizes."""
        save_state(self, path)

    @staticmethod
    def load(path: Path) -> State:
        """Read what `save` wrote. Nothing in the file is executed."""
        return load_state(path)

    def _check_changeable(self, what: str) -> None:
        if not self.method.streaming:
            raise HubnessError(
                f"cannot {what} a {self.method.name!r} state: its numbers depend on the whole bank at once; "
                "fit again from the start"
            )


def save_state(state: State, path: Path, extra: Mapping[str, Array] | None = None) -> None:
    """Write the state atomically; `extra` are arrays of the caller's, for `read_extra`."""
    from safetensors.numpy import save as to_bytes

    arrays = {
        f"{name}/{key}/{field}": np.ascontiguousarray(array)
        for name, bank in state.banks.items()
        for key, statistic in bank.statistics.items()
        for field, array in statistic.arrays().items()
    }
    arrays |= {f"{EXTRA}/of/{name}": np.ascontiguousarray(array) for name, array in (extra or {}).items()}
    about = {
        "format": FORMAT,
        "method": state.method.name,
        "parameters": asdict(state.method),
        "items": state.items,
        "banks": {name: bank.size for name, bank in state.banks.items()},
        "crc32": array_checksum(arrays),
        "dtype": sorted({str(array.dtype) for array in arrays.values()}),
    }
    atomic_write(Path(path), to_bytes(arrays, metadata={"hubness": json.dumps(about, sort_keys=True)}))


def read_extra(path: Path) -> dict[str, Array]:
    """Read the arrays stored beside a state; empty if there are none or the file is unreadable."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), framework="numpy") as file:
            names = [name for name in file.keys() if name.startswith(f"{EXTRA}/of/")]  # noqa: SIM118
            return {name.rpartition("/")[2]: file.get_tensor(name) for name in names}
    except (SafetensorError, OSError):
        return {}


def load_state(path: Path) -> State:
    """Read a state and check that its arrays fit together."""
    from safetensors import SafetensorError, safe_open

    from wordreel.hubness.registry import make_method

    try:
        with safe_open(str(path), framework="numpy") as file:
            about = json.loads((file.metadata() or {})["hubness"])
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
        if about.get("crc32") not in (None, array_checksum(arrays)):  # files of before have none
            raise ValueError("its numbers are not those it was written with")
        if about["format"] != FORMAT:
            raise HubnessError(f"{path} has format {about['format']}, this program reads {FORMAT}; fit again")
        method = make_method(about["method"], **about["parameters"])
        items = int(about["items"])
        banks = {name: _bank(method, name, int(size), items, arrays) for name, size in about["banks"].items()}
    except FileNotFoundError:
        raise HubnessError(f"there is no hubness state at {path}; fit a bank first") from None
    except (SafetensorError, KeyError, TypeError, ValueError, AttributeError, OSError) as error:
        raise HubnessError(f"{path} is not a hubness state ({error}); fit the bank again") from None
    if not banks or items < 1:
        raise HubnessError(f"{path} is not a hubness state (it has no bank); fit the bank again")
    return State(method, items, banks)


def _bank(method: Method, bank: str, size: int, items: int, arrays: dict[str, Array]) -> BankState:
    found: dict[str, dict[str, Array]] = {}
    for name, array in arrays.items():
        owner, key, field = name.split("/")
        if owner == bank:
            found.setdefault(key, {})[field] = array
    specs = {spec.kind.key: spec for spec in method.statistics(bank)}
    if size < 1 or bank not in method.banks or found.keys() != specs.keys():
        raise ValueError(f"the statistics of bank {bank!r} do not belong to {method.name!r}")
    statistics = {key: spec.kind.load(spec.parameter, size, items, found[key]) for key, spec in specs.items()}
    return BankState(size, statistics)
