"""Draws and swaps of queries, or of groups of them, for `significance`; units are either.

A unit's weight is how often it was drawn, or 1 where it swaps and 0 where it stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordreel.types import Bool, Float64, Int64

CHUNK = 1 << 17  # weights held at once: they stay in a core's caches
SIGMAS = 4  # how far from the middle a median is looked for first


def draws(units: int, samples: int, rng: np.random.Generator) -> Iterator[Float64]:
    """Yield `[some samples, units]`: how often each unit is drawn when as many are drawn as there are."""
    step = max(1, CHUNK // units)
    for start in range(0, samples, step):
        rows = min(step, samples - start)
        picks = rng.integers(units, size=(rows, units)) + np.arange(rows)[:, None] * units
        yield np.bincount(picks.ravel(), minlength=rows * units).reshape(rows, units).astype(np.float64)


def all_ways(units: int, samples: int) -> bool:
    """Whether the units can swap in no more ways than `samples`."""
    return units < samples.bit_length() and 2**units <= samples


def swaps(units: int, samples: int, rng: np.random.Generator) -> Iterator[Float64]:
    """Yield `[some samples, units]`: which units swap; every way once where `all_ways`, else at random."""
    exact = all_ways(units, samples)
    total = 2**units if exact else samples
    step = max(1, CHUNK // max(1, units))
    for start in range(0, total, step):
        rows = min(step, total - start)
        ways: NDArray[Any]
        if exact:
            ways = (np.arange(start, start + rows)[:, None] >> np.arange(units)) & 1
        else:
            bits = np.frombuffer(rng.bytes(-(-rows * units // 8)), np.uint8)
            ways = np.unpackbits(bits, count=rows * units).reshape(rows, units)
        yield ways.astype(np.float64)


class WeightedMedian:
    """The median of ranks that count as often as their unit weighs, or, the `turned` ones, 1 − weight times.

    Only ranks near the middle are looked at one by one; of those before it the weights are added up by one
    product. Samples whose middle lies farther out are done over with all ranks.
    """

    def __init__(self, ranks: Float64, unit: Int64, units: int, turned: Bool | None = None) -> None:
        order = np.argsort(ranks, kind="stable")
        self.ranks, self.unit, self.units = ranks[order], unit[order], units
        # A rank counts base + sign · weight times.
        self.base = np.zeros(len(ranks)) if turned is None else turned[order].astype(np.float64)
        self.sign = 1 - 2 * self.base
        reach = int(SIGMAS * len(ranks) / 2 / np.sqrt(units)) + 1
        middle = len(ranks) // 2
        self.near = slice(max(0, middle - reach), min(len(ranks), middle + reach + 1))
        self.all = slice(0, len(ranks))
        self.before, self.total = self._slope(slice(0, self.near.start)), self._slope(self.all)

    def of(self, weights: Float64) -> Float64:
        """Return `[samples]` medians for `weights [samples, units]`."""
        total = self._count(weights, self.total)
        middle = self._within(weights, self.near, self._count(weights, self.before), total)
        far = np.isnan(middle)
        if far.any():
            middle[far] = self._within(weights[far], self.all, np.zeros(int(far.sum())), total[far])
        return middle

    def _slope(self, span: slice) -> tuple[Float64, float]:
        slope = np.bincount(self.unit[span], self.sign[span], minlength=self.units).astype(np.float64)
        return slope, float(self.base[span].sum())

    def _count(self, weights: Float64, slope: tuple[Float64, float]) -> Float64:
        return np.asarray(weights @ slope[0] + slope[1])

    def _within(self, weights: Float64, span: slice, before: Float64, total: Float64) -> Float64:
        """Return the medians that lie in this span of the ranks in order; NaN for others."""
        counts = self.base[span] + self.sign[span] * weights[:, self.unit[span]]
        reached = np.cumsum(counts, axis=1) + before[:, None]
        middle = np.full(len(weights), np.nan)
        for row, (count, least, size) in enumerate(zip(reached, before, total, strict=True)):
            middles = np.array([(size - 1) // 2, size // 2])  # the two middle ones, or one twice
            if least <= middles[0] and middles[1] < count[-1]:
                middle[row] = self.ranks[span][np.searchsorted(count, middles, side="right")].mean()
        return middle
