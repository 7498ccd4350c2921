"""How unusual a score is for an item, by the mean and the sixth central moment of its bank similarities.

    t(q, v) = (s(q, v) − μᵥ) / √(rᵥ r̄)      rᵥ = (E (s(b, v) − μᵥ)⁶)^(1/6) over bank queries b, r̄ their median

The sixth moment weighs the rare large similarities that an answer must beat. It is damped by the square root,
because an item with large ones may have earned them: the bank asks for it. t is the same for cosines, logits
and any scale or shift of them.

rᵥ is drawn to r̄ as if by SHRINK more bank queries, which steadies small banks; a column without spread takes
r̄ itself. It is fitted, stored and updated like any method, but nothing ranks by it: `confidence` turns it
into probabilities.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import comb
from typing import Any, ClassVar, Self

import numpy as np

from wordreel.hubness.bank_statistics import ItemStatistic, Spec
from wordreel.hubness.blocks import SimilarityBlock
from wordreel.hubness.method import Method, Scorer
from wordreel.hubness.state import State
from wordreel.types import Array, Float64

ORDER = 6  # of the moment
SHRINK = 30  # bank queries that the gallery's median spread counts for
SAME = 1e-6  # a column whose spread is less than this part of its mean is constant but for rounding
FURTHEST = 100.0  # |t| beyond this is as sure as can be


@dataclass(frozen=True)
class ColumnMoments(ItemStatistic):
    """The mean and the sixth central moment of each item's bank similarities, as a stream.

        sums[v, k-1] = Σⱼ (s(bⱼ, v) − pivot[v])ᵏ,  k = 1 … 6

    The pivot is the item's first similarity, so that a constant column has sums of exactly zero. Sums about
    another pivot follow from the binomial formula, which is how blocks are merged and how moments about the
    mean are found. Everything is float64: similarities of 1e30, the largest allowed, have sixth powers of
    1e180. Cost of a block: six products per similarity, O(rows · items).
    """

    key: ClassVar[str] = "moments"
    pivot: Float64
    sums: Float64

    @classmethod
    def of(cls, block: SimilarityBlock, parameter: None) -> Self:
        pivot = block.values[0].astype(np.float64)
        return cls(None, len(block), pivot, powers(block.values, pivot))

    @classmethod
    def load(cls, parameter: None, size: int, items: int, arrays: dict[str, Array]) -> Self:
        loaded = super().load(parameter, size, items, arrays)
        if loaded.sums.shape != (items, ORDER) or any(a.dtype != np.float64 for a in arrays.values()):
            raise ValueError("moments are not six float64 sums per item")
        return loaded

    @cached_property
    def _about_mean(self) -> Float64:
        """Return the sum of sixth powers about the mean, `[items]`."""
        return _moved_sum(self.sums, self.size, -self.sums[:, 0] / self.size, ORDER)

    def mean(self) -> Float64:
        """Return μᵥ, `[items]`."""
        return self.pivot + self.sums[:, 0] / self.size

    def spread(self) -> Float64:
        """Return the sixth root of the sixth central moment, `[items]`; 0 for a constant column."""
        return np.asarray((np.maximum(self._about_mean, 0) / self.size) ** (1 / ORDER))

    def merge(self, *others: ColumnMoments) -> ColumnMoments:
        sums = sum((moved(one.sums, one.size, one.pivot - self.pivot) for one in others), self.sums)
        return ColumnMoments(None, self.size + sum(one.size for one in others), self.pivot, sums)


@dataclass(frozen=True)
class StandardScore(Method):
    """t(q, v) as a score. Not foldable: it divides."""

    name: ClassVar[str] = "unusual"
    foldable: ClassVar[bool] = False
    gpu: ClassVar[bool] = False

    def statistics(self, bank: str) -> Sequence[Spec]:
        return [Spec(ColumnMoments)]

    def scorer(self, state: State, kind: np.dtype[Any]) -> Scorer:
        centre, scale = levels(state)

        def score(block: SimilarityBlock, out: Array) -> None:
            np.clip((block.values - centre) / scale, -FURTHEST, FURTHEST, out=out)

        return score


def median(values: Float64) -> float:
    """Return the median of at least one value.

    NumPy's would import masked arrays for it, at the first search of a program.

    >>> median(np.array([3.0, 1.0, 2.0])), median(np.array([4.0, 1.0, 2.0, 3.0]))
    (2.0, 2.5)
    """
    ordered = np.sort(values)
    return float(ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def levels(state: State) -> tuple[Float64, Float64]:
    """Return μᵥ and √(rᵥ r̄), `[items]` each."""
    moments = state.statistic(ColumnMoments)
    centre, spread = moments.mean(), moments.spread()
    known = spread > SAME * np.abs(centre)
    if not known.any():
        return centre, np.ones(len(centre))  # the bank cannot tell anything apart: cosines are taken as such
    usual = median(spread[known])
    size = moments.size
    shrunk = np.sqrt((size * (spread / usual) ** 2 + SHRINK) / (size + SHRINK)) * usual
    return centre, np.where(known, np.sqrt(shrunk * usual), usual)


def powers(values: Array, pivot: Float64) -> Float64:
    """Return `[items, 6]`: the sums over rows of the first six powers of `values − pivot`."""
    one = values - pivot
    two = one * one
    four = two * two
    pairs = ((one, two), (two, two), (four, one), (four, two))  # the third to the sixth power
    sums = [one.sum(axis=0), two.sum(axis=0), *(np.einsum("ij,ij->j", a, b) for a, b in pairs)]
    return np.stack(sums, axis=1)


def moved(sums: Float64, size: int, by: Float64) -> Float64:
    """Return the sums about `pivot − by`: Σ (d + by)ᵏ = Σⱼ C(k, j) byᵏ⁻ʲ Σ dʲ."""
    return np.stack([_moved_sum(sums, size, by, order) for order in range(1, ORDER + 1)], axis=1)


def _moved_sum(sums: Float64, size: int, by: Float64, order: int) -> Float64:
    """Return one of them, by Horner's rule: powers of a million numbers take half a second."""
    total = np.full(len(sums), float(size))
    for j in range(1, order + 1):
        total *= by
        total += comb(order, j) * sums[:, j - 1]
    return total
