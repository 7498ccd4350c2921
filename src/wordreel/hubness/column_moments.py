"""The mean and the sixth central moment of each gallery item's bank similarities, as a stream.

    sums[v, k-1] = Σⱼ (s(bⱼ, v) − pivot[v])ᵏ,  k = 1 … 6

The pivot is the item's first similarity, so that a constant column has sums of exactly zero. Sums about
another pivot follow from the binomial formula, which is how two banks are merged and how moments about the
mean are found. Everything is float64: similarities of 1e30, the largest allowed, have sixth powers of 1e180.
Cost of a block: six products per similarity, O(rows · items).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import comb

import numpy as np

from wordreel.hubness.blocks import SimilarityBlock
from wordreel.hubness.statistic import ItemStatistic
from wordreel.types import Array, Float64

ORDER = 6


@dataclass(frozen=True)
class ColumnMoments(ItemStatistic):
    """`pivot [items]` and `sums [items, 6]` over `size` queries."""

    size: int
    pivot: Float64
    sums: Float64

    @cached_property
    def _about_mean(self) -> Float64:
        """The sum of sixth powers about the mean, `[items]`."""
        return _moved_sum(self.sums, self.size, -self.sums[:, 0] / self.size, ORDER)

    def mean(self) -> Float64:
        """μᵥ, `[items]`."""
        return self.pivot + self.sums[:, 0] / self.size

    def spread(self) -> Float64:
        """The sixth root of the sixth central moment, `[items]`; 0 for a constant column."""
        return np.asarray((np.maximum(self._about_mean, 0) / self.size) ** (1 / ORDER))

    def merge(self, other: ColumnMoments) -> ColumnMoments:
        theirs = moved(other.sums, other.size, other.pivot - self.pivot)
        return ColumnMoments(self.size + other.size, self.pivot, self.sums + theirs)


class ColumnMomentsBuilder:
    """Adds up the powers of blocks."""

    def __init__(self) -> None:
        self._size = 0
        self._pivot: Float64 | None = None
        self._sums: Float64 | None = None

    @property
    def key(self) -> tuple[object, ...]:
        return ("moments",)

    def update(self, block: SimilarityBlock) -> None:
        self._size += len(block)
        if self._pivot is None or self._sums is None:
            self._pivot = block.values[0].astype(np.float64)
            self._sums = powers(block.values, self._pivot)
        else:
            self._sums += powers(block.values, self._pivot)

    def build(self) -> ColumnMoments:
        assert self._pivot is not None  # noqa: S101 - a builder saw a block
        assert self._sums is not None  # noqa: S101
        return ColumnMoments(self._size, self._pivot, self._sums)


def powers(values: Array, pivot: Float64) -> Float64:
    """`[items, 6]`: the sums over rows of the first six powers of `values − pivot`."""
    one = values - pivot
    two = one * one
    four = two * two
    pairs = ((one, two), (two, two), (four, one), (four, two))  # the third to the sixth power
    sums = [one.sum(axis=0), two.sum(axis=0), *(np.einsum("ij,ij->j", a, b) for a, b in pairs)]
    return np.stack(sums, axis=1)


def moved(sums: Float64, size: int, by: Float64) -> Float64:
    """The sums about `pivot − by`: Σ (d + by)ᵏ = Σⱼ C(k, j) byᵏ⁻ʲ Σ dʲ."""
    return np.stack([_moved_sum(sums, size, by, order) for order in range(1, ORDER + 1)], axis=1)


def _moved_sum(sums: Float64, size: int, by: Float64, order: int) -> Float64:
    """One of them, by Horner's rule: powers of a million numbers take half a second."""
    total = np.full(len(sums), float(size))
    for j in range(1, order + 1):
        total *= by
        total += comb(order, j) * sums[:, j - 1]
    return total
