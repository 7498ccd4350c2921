"""The same experiment with several seeds: mean ± standard deviation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from wordreel.errors import EvaluationError
from wordreel.evaluate.ranks import Recall


@dataclass(frozen=True)
class Spread:
    """Means and standard deviations of each figure over `runs` runs; a single run has no deviation (NaN)."""

    mean: Recall
    deviation: Recall
    runs: int


def aggregate(runs: Sequence[Recall]) -> Spread:
    """Average the figures of runs over the same queries.

    The deviation is that of a sample, √(Σ (x − mean)² / (n − 1)), as in the published tables. The geometric
    mean and the sum are averaged too, not computed from averages.

    >>> from wordreel.evaluate.ranks import recall
    >>> spread = aggregate([recall(np.array([1.0, 1.0])), recall(np.array([1.0, 3.0]))])
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
    apart = {
        name: float(np.std(values, ddof=1)) if len(runs) > 1 else float("nan")
        for name, values in columns.items()
    }
    count = queries.pop()
    return Spread(Recall(**mean, queries=count), Recall(**apart, queries=count), len(runs))
