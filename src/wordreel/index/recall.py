"""How many of the true best items an index returns: measured, so that it can be stated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wordreel.index.base import Correction, Index, QuerySample
from wordreel.types import Bool

K = 10


@dataclass(frozen=True)
class MeasuredRecall:
    """The share of the exact `k` best that an index returned, over so many queries."""

    value: float
    queries: int
    k: int = K

    def __str__(self) -> str:
        return f"recall@{self.k} {self.value:.3f} on {self.queries} queries"


def measure_recall(
    index: Index,
    exact: Index,
    queries: QuerySample,
    allowed: Bool | None = None,
    correction: Correction | None = None,
    k: int = K,
) -> MeasuredRecall:
    """Compare an index with an exact one over the same rows; cost: one exact search of all queries."""
    true = exact.search(queries.vectors, queries.weights, k, allowed, correction).rows
    found = index.search(queries.vectors, queries.weights, k, allowed, correction).rows
    shares = [
        len(set(want[want >= 0].tolist()) & set(got.tolist())) / max(1, int((want >= 0).sum()))
        for want, got in zip(true, found, strict=True)
    ]
    return MeasuredRecall(float(np.mean(shares)), len(shares), k)
