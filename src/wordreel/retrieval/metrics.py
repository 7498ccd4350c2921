"""Retrieval metrics of ranks: R@K, median and mean rank, their sums, by name, and over several seeds.

R@K, R-sum, the geometric mean and the mean rank are functions of a few averages over queries: the `parts` of
a `Metric` are what each query adds, and its `value` turns the averages into the metric. The median is not one
of them. Every rank counts from 1; NaN is a query without a right answer, infinity an answer that was not
retrieved at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from wordreel.errors import EvaluationError
from wordreel.types import Bool, Float64

NAMES = {  # as in the published tables, and the field of `RetrievalMetrics`
    "R1": "r1",
    "R5": "r5",
    "R10": "r10",
    "R50": "r50",
    "MdR": "median_rank",
    "MnR": "mean_rank",
    "Geom": "geometric_mean",
    "Rsum": "rsum",
}
DISPLAYED = ("R1", "R5", "R10", "R50", "MdR", "MnR", "Geom")


@dataclass(frozen=True)
class RetrievalMetrics:
    """Recall in per cent at 1, 5, 10 and 50, ranks, and two aggregates, over `queries` queries.

    `geometric_mean` is that of R@1, R@5 and R@10, and `rsum` their sum, in one direction: the sum of six
    that some papers print is that of both directions.
    """

    r1: float
    r5: float
    r10: float
    r50: float
    median_rank: float
    mean_rank: float
    geometric_mean: float
    rsum: float
    queries: int

    def table(self, names: Sequence[str] = tuple(NAMES)) -> dict[str, float]:
        """Return the metrics under the short names of the published tables.

        >>> retrieval_metrics(np.array([1.0, 4.0])).table(["R1", "MdR"])
        {'R1': 50.0, 'MdR': 2.5}
        """
        return {name: getattr(self, NAMES[name]) for name in names}


def hits_at(ranks: Float64, k: int) -> Bool:
    """Return which queries have their answer among the first `k`.

    As published: a tie for rank 1 is not rank 1 (1.5 is out for k = 1), but the mean rank of a tie that
    begins within a longer list may be half a rank beyond it (5.5 is in for k = 5).
    """
    if k < 1:
        raise EvaluationError(f"recall is counted at 1 or more, not at {k}")
    return np.asarray(ranks == 1 if k == 1 else ranks < k + 1)


def answered(ranks: Float64) -> Float64:
    """Return the ranks of queries that have a right answer: NaN stands for those that have none.

    >>> answered(np.array([2.0, np.nan])).tolist()
    [2.0]
    """
    ranks = np.asarray(ranks, np.float64)
    ranks = ranks[~np.isnan(ranks)]
    if len(ranks) == 0:
        raise EvaluationError("there are no queries with a right answer; nothing can be measured")
    return ranks


def recall_at(ranks: Float64, k: int) -> float:
    """Share in per cent of the queries that have their answer among the first `k`.

    >>> recall_at(np.array([1.0, 4.0, 20.0, 30.0]), 25)
    75.0
    """
    return 100 * float(np.mean(hits_at(answered(ranks), k)))


def retrieval_metrics(ranks: Float64) -> RetrievalMetrics:
    """Average the ranks of many queries.

    Args:
        ranks: `[queries]`, 1 for the best; infinity for an answer that was not retrieved, NaN for a query
            without a right answer, which does not count.

    Returns:
        R@1, R@5, R@10 and R@50 in per cent, the median and mean rank, and aggregates of R@1, R@5 and R@10.

    Raises:
        EvaluationError: No query has a right answer.

    >>> retrieval_metrics(np.array([1.0, 4.0, 20.0, 30.0])).r5
    50.0
    """
    ranks = answered(ranks)
    r1, r5, r10, r50 = (recall_at(ranks, k) for k in (1, 5, 10, 50))
    median, mean = float(np.median(ranks)), float(np.mean(ranks))
    return RetrievalMetrics(
        r1, r5, r10, r50, median, mean, geometric_mean(r1, r5, r10), r1 + r5 + r10, len(ranks)
    )


def geometric_mean(r1: float, r5: float, r10: float) -> float:
    """Compute (R@1 · R@5 · R@10)^⅓, the metric by which the published systems choose their epoch."""
    return float(np.cbrt(r1 * r5 * r10))


@dataclass(frozen=True)
class Metric:
    """`parts [queries, n]` of ranks and `value [...]` of averages `[..., n]`; no parts means the median."""

    name: str
    parts: Callable[[Float64], Float64] | None
    value: Callable[[Float64], Float64]
    bounded: bool = True  # defined for an answer that was not retrieved

    def compute(self, ranks: Float64) -> Float64:
        """Compute the metric over these ranks."""
        if self.parts is None:
            return np.asarray(np.median(ranks))
        return self.value(self.parts(ranks).sum(axis=0) / len(ranks))


def metric_of(name: str) -> Metric:
    """Look up a metric: R1, R5, … of any K; Rsum, Geom (both of 1, 5 and 10); MdR, MnR.

    >>> float(metric_of("R5").compute(np.array([1.0, 4.0, 20.0, 30.0])))
    50.0
    """
    if name == "MdR":
        return Metric(name, None, _only, bounded=False)
    if name == "MnR":
        return Metric(name, lambda ranks: ranks[:, None], _only, bounded=False)
    if name == "Rsum":
        return Metric(name, _hits(1, 5, 10), lambda shares: 100 * shares.sum(axis=-1))
    if name == "Geom":
        return Metric(name, _hits(1, 5, 10), lambda shares: 100 * np.cbrt(shares.prod(axis=-1)))
    if re.fullmatch(r"R[1-9][0-9]{0,8}", name):
        return Metric(name, _hits(int(name[1:])), lambda shares: 100 * shares[..., 0])
    raise EvaluationError(
        f"there is no metric {name!r}; known are R1, R5, … of any K, Rsum, Geom, MdR and MnR"
    )


def _hits(*ks: int) -> Callable[[Float64], Float64]:
    return lambda ranks: np.stack([hits_at(ranks, k).astype(np.float64) for k in ks], axis=1)


def _only(averages: Float64) -> Float64:
    return np.asarray(averages[..., 0])


@dataclass(frozen=True)
class MetricSpread:
    """Means and standard deviations of each metric over `runs` runs; a single run has no deviation (NaN)."""

    mean: RetrievalMetrics
    deviation: RetrievalMetrics
    runs: int


def aggregate(runs: Sequence[RetrievalMetrics]) -> MetricSpread:
    """Average the metrics of runs over the same queries.

    The deviation is that of a sample, √(Σ (x − mean)² / (n − 1)), as in the published tables. The geometric
    mean and the sum are averaged too, not computed from averages.

    >>> spread = aggregate([retrieval_metrics(np.array([1.0, 1.0])), retrieval_metrics(np.array([1.0, 3.0]))])
    >>> f"{spread.mean.r1:.1f} ± {spread.deviation.r1:.1f}"
    '75.0 ± 35.4'
    """
    if not runs:
        raise EvaluationError("there are no runs to average")
    queries = {run.queries for run in runs}
    if len(queries) > 1:
        raise EvaluationError(f"the runs are over different numbers of queries: {sorted(queries)}")
    columns = {name: [asdict(run)[name] for run in runs] for name in asdict(runs[0]) if name != "queries"}
    mean = {name: float(np.mean(values)) for name, values in columns.items()}
    deviation = {
        name: float(np.std(values, ddof=1)) if len(runs) > 1 else float("nan")
        for name, values in columns.items()
    }
    count = queries.pop()
    return MetricSpread(
        RetrievalMetrics(**mean, queries=count), RetrievalMetrics(**deviation, queries=count), len(runs)
    )
