"""What a state consists of: statistics of a bank, each O(gallery) or O(bank) in size.

A statistic is frozen. `of` takes it from one block of similarities, `merge` joins those of several blocks (or
of several banks), so the same two functions fit a bank on one core, on many, in a stream and on workers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from wordreel.errors import HubnessError
from wordreel.hubness.blocks import SimilarityBlock
from wordreel.index.topk import topk_ids
from wordreel.types import Array, Bool, Float64, Int64

SAFE_EXPONENT = 30.0  # exp(±30) and sums of such terms are far from the limits of float32
SMALL_BETA = 0.1


class Statistic(Protocol):
    """One statistic of a bank of `size` queries over a gallery."""

    key: ClassVar[str]  # its name in files
    fold_rows: ClassVar[float]  # bank queries whose statistics are collected before they are merged

    @property
    def size(self) -> int: ...

    @classmethod
    def of(cls, block: SimilarityBlock, parameter: Any) -> Self:
        """Return the statistic of some rows; `parameter` is that of its `Spec`."""
        ...

    @classmethod
    def load(cls, parameter: Any, size: int, items: int, arrays: dict[str, Array]) -> Self:
        """Return what `arrays` gave; a ValueError or TypeError if they do not fit together."""
        ...

    def merge(self, *others: Any) -> Statistic:
        """Return the statistic of all banks together, in order."""
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
        """Return everything but the parameters, for a file."""
        ...


class Spec(NamedTuple):
    """A statistic that a method needs, and its parameter: equal specs are gathered once."""

    kind: type[Statistic]
    parameter: Any = None


@dataclass(frozen=True)
class ItemStatistic:
    """Base of statistics whose arrays hold numbers for each item, `[items, ...]`."""

    fold_rows: ClassVar[float] = 1
    parameter: Any
    size: int

    @classmethod
    def load(cls, parameter: Any, size: int, items: int, arrays: dict[str, Array]) -> Self:
        check_arrays(arrays, dict.fromkeys(arrays, items))
        return cls(parameter, size, **arrays)

    def extend(self, other: Self) -> Self:
        theirs = other.arrays()
        both: dict[str, Any] = {k: np.concatenate([own, theirs[k]]) for k, own in self.arrays().items()}
        return replace(self, **both)

    def select(self, mask: Bool) -> Self:
        chosen: dict[str, Any] = {name: own[mask] for name, own in self.arrays().items()}
        return replace(self, **chosen)

    def arrays(self) -> dict[str, Array]:
        values = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: value for name, value in values if isinstance(value, np.ndarray)}


def check_arrays(arrays: dict[str, Array], lengths: dict[str, int]) -> None:
    """Raise a ValueError unless every array has its length and holds finite numbers."""
    for name, array in arrays.items():
        if array.ndim == 0 or len(array) != lengths[name] or not np.isfinite(array).all():
            raise ValueError(f"{name} of shape {array.shape} does not fit")


@dataclass(frozen=True)
class ColumnMean(ItemStatistic):
    """The sum `total [items]` of each item's bank similarities, in float64."""

    key: ClassVar[str] = "mean"
    total: Float64

    @classmethod
    def of(cls, block: SimilarityBlock, parameter: None) -> Self:
        return cls(None, len(block), block.values.sum(axis=0, dtype=np.float64))

    def merge(self, *others: ColumnMean) -> ColumnMean:
        every = (self, *others)
        total = sum((one.total for one in others), self.total)
        return ColumnMean(None, sum(one.size for one in every), total)

    def mean(self) -> Float64:
        """Return the mean, `[items]`."""
        return self.total / self.size


@dataclass(frozen=True)
class LogSumExp(ItemStatistic):
    """The log-mean-exp of each item's bank similarities; the parameter is β.

        bᵥ = (1/β) log( (1/m) Σⱼ exp(β s(bⱼ, v)) )

    Stored as a shift and a float64 sum, bᵥ = shiftᵥ + (log totalᵥ − log m)/β with totalᵥ = Σⱼ exp(β(s −
    shiftᵥ)), so nothing overflows. The mean instead of the sum moves every bᵥ by log(m)/β, which changes no
    ranking and keeps bᵥ between the mean (β → 0) and the maximum (β → ∞) of the column. Exponentials are
    taken in float32 for float32 input with β ≥ 0.1 (an error of about 1e-7/β in bᵥ), in float64 otherwise.
    """

    key: ClassVar[str] = "logsum"
    shift: Float64  # [items]
    total: Float64

    @classmethod
    def of(cls, block: SimilarityBlock, parameter: float) -> Self:
        values, beta = block.values, parameter
        if beta < SMALL_BETA:
            values = values.astype(np.float64)
        shift = np.zeros(values.shape[1])
        if beta * block.max_abs > SAFE_EXPONENT:
            highest = values.max(axis=0)
            values, shift = values - highest, highest.astype(np.float64)
        terms = values * np.asarray(beta, values.dtype)
        np.exp(terms, out=terms)
        return cls(beta, len(block), shift, terms.sum(axis=0, dtype=np.float64))

    @classmethod
    def load(cls, parameter: float, size: int, items: int, arrays: dict[str, Array]) -> Self:
        loaded = super().load(parameter, size, items, arrays)
        if not (loaded.total > 0).all():
            raise ValueError("a sum of exponentials is not positive")
        return loaded

    def merge(self, *others: LogSumExp) -> LogSumExp:
        merged = self
        for other in others:
            size, shift, total = merged.size + other.size, merged.shift, merged.total + other.total
            if not np.array_equal(shift, other.shift):
                shift = np.maximum(shift, other.shift)
                total = merged._total_at(shift) + other._total_at(shift)
            merged = LogSumExp(self.parameter, size, shift, total)
        return merged

    def _total_at(self, shift: Float64) -> Float64:
        return np.asarray(self.total * np.exp(self.parameter * (self.shift - shift)))

    def soft_mean(self) -> Float64:
        """Return bᵥ, `[items]`."""
        return np.asarray(self.shift + (np.log(self.total) - np.log(self.size)) / self.parameter)


@dataclass(frozen=True)
class TopK(ItemStatistic):
    """The k largest bank similarities of each item, `values [items, min(k, size)]`, largest first.

    Cost of a block: one partition, O(rows · items).
    """

    key: ClassVar[str] = "best"
    fold_rows: ClassVar[float] = 256
    values: Array

    @classmethod
    def of(cls, block: SimilarityBlock, parameter: int) -> Self:
        columns = block.values.T
        rest = columns.shape[1] - parameter
        values = np.partition(columns, rest, axis=1)[:, rest:] if rest > 0 else columns.copy()
        return cls(parameter, len(block), values)

    def merge(self, *others: TopK) -> TopK:
        every = (self, *others)
        values = np.concatenate([one.values for one in every], axis=1)
        rest = values.shape[1] - self.parameter
        if rest > 0:
            values = np.partition(values, rest, axis=1)[:, rest:]
        return TopK(self.parameter, sum(one.size for one in every), -np.sort(-values, axis=1))

    def mean(self) -> Float64:
        """Return the mean of the k largest, of all where the bank is smaller than k, `[items]`."""
        return np.asarray(self.values.mean(axis=1, dtype=np.float64))


@dataclass(frozen=True)
class ActivationSet:
    """The k best gallery items of each bank query: their union is the activation set, A = ∪ⱼ top-kᵥ s(bⱼ, v).

    `ids [size, k]`, best first, -1 where the gallery is shorter than k, and their `scores`. Of equal scores,
    the item with the lower number wins. Each bank query's best items are stored, not one bit per item: a new
    item takes exactly the queries it wins. An item that has won a query cannot be removed, because nothing
    says which item comes next: fit again.
    """

    key: ClassVar[str] = "winners"
    fold_rows: ClassVar[float] = math.inf
    parameter: int
    items: int
    ids: NDArray[np.int32]
    scores: Array

    @classmethod
    def of(cls, block: SimilarityBlock, parameter: int) -> Self:
        k, items = parameter, block.values.shape[1]
        if k == 1:
            return cls(k, items, block.tops[:, None].astype(np.int32), block.best[:, None])
        best = topk_ids(block.values, k)
        return cls(k, items, *padded(best, np.take_along_axis(block.values, best, axis=1), k))

    @classmethod
    def load(cls, parameter: int, size: int, items: int, arrays: dict[str, Array]) -> Self:
        ids, scores = arrays["ids"], arrays["scores"]
        check_arrays(
            {"ids": ids, "scores": np.where(np.isneginf(scores), 0, scores)}, dict.fromkeys(arrays, size)
        )
        if ids.shape != (size, parameter) or scores.shape != ids.shape or ids.dtype != np.int32:
            raise ValueError("the activation set does not fit the bank")
        if ids.min() < -1 or ids.max() >= items:
            raise ValueError("the activation set does not hold gallery items")
        return cls(parameter, items, ids, scores)

    @property
    def size(self) -> int:
        return len(self.ids)

    @property
    def counts(self) -> Int64:
        """How many bank queries have each item among their k best, `[items]`."""
        return np.bincount(self.ids[self.ids >= 0], minlength=self.items)

    def merge(self, *others: ActivationSet) -> ActivationSet:
        every = (self, *others)
        ids = np.concatenate([one.ids for one in every])
        return replace(self, ids=ids, scores=np.concatenate([one.scores for one in every]))

    def extend(self, other: ActivationSet) -> ActivationSet:
        scores = np.concatenate([self.scores, other.scores], axis=1)
        theirs = np.where(other.ids >= 0, other.ids + np.int32(self.items), np.int32(-1))
        ids = np.concatenate([self.ids, theirs], axis=1)
        # A stable sort: old items come first, so they stay ahead of equal new ones.
        order = np.argsort(-scores, axis=1, kind="stable")[:, : self.parameter]
        ids, scores = (np.take_along_axis(a, order, axis=1) for a in (ids, scores))
        return ActivationSet(self.parameter, self.items + other.items, ids, scores)

    def select(self, mask: Bool) -> ActivationSet:
        if not mask[self.ids[self.ids >= 0]].all():
            raise HubnessError("a removed item is the best of a bank query; fit the bank again")
        position = np.where(mask, np.cumsum(mask) - 1, -1).astype(np.int32)
        ids = np.where(self.ids >= 0, position[self.ids], np.int32(-1))
        return replace(self, items=int(mask.sum()), ids=ids)

    def arrays(self) -> dict[str, Array]:
        return {"ids": self.ids, "scores": self.scores}


def padded(ids: Array, scores: Array, k: int) -> tuple[NDArray[np.int32], Array]:
    """Return item numbers and scores `[rows, k]`, filled up with -1 and -inf."""
    missing = ((0, 0), (0, k - ids.shape[1]))
    ids = np.pad(ids.astype(np.int32), missing, constant_values=-1)
    return ids, np.pad(scores, missing, constant_values=-np.inf)
