"""Is one run better than another over the same queries, or was it luck?

Two answers about the difference B − A of a metric, both from the ranks of the same queries in both runs:

- a confidence interval by the paired bootstrap (Efron 1979): draw as many queries, with replacement, as
  there are, take the metric of both runs over those, many times, and cut off the tails of the differences;
- a p-value by the paired permutation test (Fisher 1935): if the runs were alike, each query could as well
  have swapped its two ranks. How often do random swaps make a difference as large, either way, as the one
  seen? All swaps are tried where there are no more of them than `samples`, and the p-value is exact;
  otherwise it is (1 + as large) / (1 + samples), which is never too small.

Captions of one video are not independent: `groups` names each query's video, and whole videos are then drawn
and swapped.

Cost: queries (or groups) that contribute the same are interchangeable, so how often each *kind* of them is
drawn is multinomial, and how many of a kind swap is binomial: recall over 30,000 queries has a handful of
kinds. Where there are many kinds (mean and median rank), it is `samples` passes over the units.

A unit is a query, or a group of them; its weight is how often it was drawn, or 1 where it swaps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordreel.errors import EvaluationError
from wordreel.retrieval.metrics import Metric, metric_of
from wordreel.types import Float64, Int64

CHUNK = 1 << 17  # weights held at once: they stay in a core's caches
MEDIAN_SIGMAS = 8  # standard deviations that medians of samples may lie apart
UNITS_PER_KIND = 16  # kinds are drawn instead of units where there are at least this many units to a kind


@dataclass(frozen=True)
class Comparison:
    """What B has more than A: `low` to `high` holds the difference with confidence `level`."""

    metric: str
    a: float
    b: float
    difference: float
    low: float
    high: float
    p_value: float
    exact: bool  # all swaps were tried
    queries: int
    groups: int  # that were drawn and swapped; as many as queries where none were given
    samples: int
    level: float


def compare(
    ranks_a: Float64,
    ranks_b: Float64,
    metric: str = "R1",
    *,
    groups: Sequence[Any] | NDArray[Any] | None = None,
    samples: int = 10_000,
    level: float = 0.95,
    seed: int = 0,
) -> Comparison:
    """Compare two runs by the ranks of the same queries; a query that is NaN in both does not count.

    `metric` is R1 or R of any K, Rsum, Geom, MdR or MnR. Of the last two, less is better.

    >>> result = compare(np.array([2.0, 3, 1, 2, 5, 4]), np.ones(6), "R1")
    >>> round(result.difference, 1), result.p_value, result.exact
    (83.3, 0.0625, True)
    """
    measure = metric_of(metric)
    pairs, unit, units = _pair(ranks_a, ranks_b, groups)
    if samples < 1 or not 0 < level < 1:
        raise EvaluationError(f"samples must be 1 or more and level in (0, 1), not {samples} and {level}")
    if not measure.bounded and not np.isfinite(pairs).all():
        raise EvaluationError(
            f"{metric} needs the rank of every answer; some were not retrieved. Compare R1 … R50"
        )
    rng = np.random.default_rng(seed)
    a, b = (float(measure.compute(ranks)) for ranks in pairs)
    sums = _UnitSums.of(measure, pairs, unit, units)
    drawn = _bootstrap(sums, units, samples, rng)
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    p_value, exact = _permute(sums, samples, rng)
    return Comparison(
        metric, a, b, b - a, float(low), float(high), p_value, exact, pairs.shape[1], units, samples, level
    )


def _pair(
    ranks_a: Float64, ranks_b: Float64, groups: Sequence[Any] | NDArray[Any] | None
) -> tuple[Float64, Int64, int]:
    """`[2, queries]` ranks, the number of each query's unit, and how many units there are."""
    a, b = np.asarray(ranks_a, np.float64), np.asarray(ranks_b, np.float64)
    if a.ndim != 1 or a.shape != b.shape:
        raise EvaluationError(
            f"two runs need a rank for each of the same queries, not {a.shape} and {b.shape}"
        )
    asks = ~np.isnan(a)
    if (asks != ~np.isnan(b)).any():
        query = int(np.flatnonzero(asks == np.isnan(b))[0])
        raise EvaluationError(f"query {query} has a right answer in one run and none in the other")
    if not asks.any():
        raise EvaluationError("there are no queries with a right answer; nothing can be compared")
    if (np.minimum(a, b)[asks] < 1).any():
        raise EvaluationError("ranks count from 1; some are smaller")
    pairs = np.stack([a[asks], b[asks]])
    if groups is None:
        return pairs, np.arange(pairs.shape[1]), pairs.shape[1]
    named = np.asarray(groups)
    if named.shape != a.shape:
        raise EvaluationError(f"{len(a)} queries need as many groups, not {named.shape}")
    names, unit = np.unique(named[asks], return_inverse=True)
    return pairs, unit.astype(np.int64), len(names)


def _bootstrap(sums: _UnitSums, units: int, samples: int, rng: np.random.Generator) -> Float64:
    """Return `[samples]` differences over units drawn with replacement."""
    facts = np.hstack([sums.a, sums.b, sums.queries[:, None]])
    kinds, many = np.unique(facts, axis=0, return_counts=True)
    if len(kinds) * UNITS_PER_KIND <= units:
        totals = rng.multinomial(units, many / units, size=samples) @ kinds
    else:
        totals = np.concatenate([weights @ facts for weights in draws(units, samples, rng)])
    width, count = sums.a.shape[1], totals[:, -1]
    return sums.value(totals[:, width:-1], count) - sums.value(totals[:, :width], count)


def _permute(sums: _UnitSums, samples: int, rng: np.random.Generator) -> tuple[float, bool]:
    """Return how likely random swaps make as large a difference, and whether all of them were tried."""
    leads = (sums.b - sums.a)[(sums.a != sums.b).any(axis=1)]
    exact = all_ways(len(leads), samples)
    kinds, many = _kinds(leads)
    if not exact and len(kinds) * UNITS_PER_KIND <= len(leads):
        lead = (2 * rng.binomial(many, 0.5, size=(samples, len(many))) - many) @ kinds
    else:
        lead = np.concatenate([(1 - 2 * ways) @ leads for ways in swaps(len(leads), samples, rng)])
    both = sums.a.sum(axis=0) + sums.b.sum(axis=0)
    count = np.atleast_1d(sums.queries.sum())

    def difference(by: Float64) -> Float64:
        # Sums of ranks and of hits are exact in float64, so equal differences compare as equal.
        return sums.value((both + by) / 2, count) - sums.value((both - by) / 2, count)

    differences, seen = difference(lead), difference(leads.sum(axis=0)[None])[0]
    as_large, more = np.count_nonzero(np.abs(differences) >= abs(seen)), 0 if exact else 1
    return float((as_large + more) / (len(differences) + more)), exact


@dataclass(frozen=True)
class _UnitSums:
    """What each unit adds to a metric in both runs, and how many queries it has.

    `value` makes the metric of totals `[samples, parts]` over `[samples]` queries.
    """

    a: Float64
    b: Float64
    queries: Float64
    value: Callable[[Float64, Float64], Float64]

    @classmethod
    def of(cls, measure: Metric, pairs: Float64, unit: Int64, units: int) -> _UnitSums:
        queries = np.bincount(unit, minlength=units).astype(np.float64)
        if measure.parts is not None:
            a, b = (_sums(measure.parts(ranks), unit, units) for ranks in pairs)
            return cls(a, b, queries, lambda totals, count: measure.value(totals / count[:, None]))
        # Of the median, the parts are how often each rank occurs. Ranks that no median of a sample reaches
        # count as the last one that may: a unit adds at most all its queries to one side of the middle.
        reach = MEDIAN_SIGMAS / 2 * np.sqrt((queries**2).sum()) / queries.sum()
        if reach < 0.5:
            ends = np.quantile(pairs, [0.5 - reach, 0.5 + reach], axis=1)
            pairs = np.clip(pairs, ends[0].min(), ends[1].max())
        ranks, index = np.unique(pairs, return_inverse=True)
        tables = np.zeros((2, units, len(ranks)))
        for table, row in zip(tables, index.reshape(pairs.shape), strict=True):
            np.add.at(table, (unit, row), 1)
        return cls(tables[0], tables[1], queries, lambda totals, count: _medians(ranks, totals, count))


def _medians(ranks: Float64, totals: Float64, count: Float64) -> Float64:
    """Return `[samples]` medians, where `totals [samples, ranks]` say how often each rank occurs."""
    reached = np.cumsum(totals, axis=1)
    middles = ((count - 1) // 2, count // 2)  # the two middle ones, or one twice
    return np.asarray(sum(ranks[(reached > middle[:, None]).argmax(axis=1)] for middle in middles) / 2)


def _sums(parts: Float64, unit: Int64, units: int) -> Float64:
    """`[units, parts]`: the parts of each unit's queries, added up."""
    return np.stack([np.bincount(unit, column, minlength=units) for column in parts.T], axis=1)


def _kinds(leads: Float64) -> tuple[Float64, Int64]:
    """Distinct leads, where one and its opposite are one kind, and how many there are of each."""
    first = np.take_along_axis(leads, (leads != 0).argmax(axis=1)[:, None], axis=1)
    kinds, many = np.unique(leads * np.sign(first), axis=0, return_counts=True)
    return kinds, many


def draws(units: int, samples: int, rng: np.random.Generator) -> Iterator[Float64]:
    """Yield `[some samples, units]`: how often each unit is drawn when as many are drawn as there are."""
    step = max(1, CHUNK // units)
    for start in range(0, samples, step):
        rows = min(step, samples - start)
        picks = rng.integers(units, size=(rows, units)) + np.arange(rows)[:, None] * units
        yield np.bincount(picks.ravel(), minlength=rows * units).reshape(rows, units).astype(np.float64)


def all_ways(units: int, samples: int) -> bool:
    """Return whether the units can swap in no more ways than `samples`."""
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
