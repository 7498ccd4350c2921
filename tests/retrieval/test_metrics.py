import statistics

import numpy as np
import pytest

from wordreel.errors import EvaluationError
from wordreel.retrieval.metrics import aggregate, retrieval_metrics


def test_mean_and_deviation_of_every_figure():
    rng = np.random.default_rng(0)
    runs = [retrieval_metrics(rng.integers(1, 80, 50).astype(float)) for _ in range(3)]
    found = aggregate(runs)
    assert (found.runs, found.mean.queries) == (3, 50)
    for name in ("r1", "r5", "r10", "r50", "median_rank", "mean_rank", "geometric_mean", "rsum"):
        values = [getattr(run, name) for run in runs]
        assert getattr(found.mean, name) == pytest.approx(statistics.mean(values))
        assert getattr(found.deviation, name) == pytest.approx(statistics.stdev(values))


def test_one_run_has_no_deviation():
    found = aggregate([retrieval_metrics(np.array([1.0, 2.0]))])
    assert found.mean.r1 == 50
    assert np.isnan(found.deviation.r1)


def test_runs_that_cannot_be_averaged():
    with pytest.raises(EvaluationError, match="no runs"):
        aggregate([])
    with pytest.raises(EvaluationError, match=r"\[1, 2\]"):
        aggregate([retrieval_metrics(np.ones(1)), retrieval_metrics(np.ones(2))])
