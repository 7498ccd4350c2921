import numpy as np
import pytest
from tests.hubness import naive
from tests.hubness.cases import case

from wordreel.errors import HubnessError
from wordreel.hubness import make_method
from wordreel.hubness.measures import (
    antihub_occurrence,
    atkinson,
    gini,
    groupie_ratio,
    hub_occurrence,
    k_occurrence,
    measure_hubness,
    robin_hood,
    skewness,
)
from wordreel.index.topk import topk_ids


def test_k_occurrence_counts_the_definition_with_ties():
    for seed in range(400):
        given = case(seed)
        for k in (1, 2, 10):
            counts = k_occurrence(given.rows, k)
            assert counts.tolist() == naive.k_occurrence(given.rows, k)
            assert counts.sum() == len(given.rows) * min(k, given.rows.shape[1])
            ranking = np.argsort(-given.rows.astype(np.float64), axis=1, kind="stable")
            assert (
                k_occurrence(ranking, min(k, ranking.shape[1]), ranking.shape[1]).tolist() == counts.tolist()
            )


def test_top_ids_are_in_order():
    for seed in range(400):
        given = case(seed)
        for k in (1, 2, 3, 50):
            rows = given.rows.astype(np.float64)
            assert topk_ids(rows, k).tolist() == [naive.order(row, k) for row in rows]


def test_measures_of_known_counts():
    even, single = np.array([3, 3, 3, 3]), np.array([0, 0, 0, 12])
    for measure in (skewness, robin_hood, gini, atkinson, antihub_occurrence):
        assert measure(even) == pytest.approx(0)
    assert skewness(single) == pytest.approx(2 / np.sqrt(3))
    assert robin_hood(single) == pytest.approx(0.75)
    assert gini(single) == pytest.approx(0.75)
    assert atkinson(single) == pytest.approx(1 - 12 / 16 / 3)
    assert antihub_occurrence(single) == 0.75
    assert hub_occurrence(single, k=6) == 1
    assert hub_occurrence(single, k=7) == 0
    assert groupie_ratio(single, k=1) == 1
    assert groupie_ratio(single, k=2, queries=12) == 0.5


def test_measures_of_random_counts():
    rng = np.random.default_rng(0)
    for _ in range(200):
        counts = rng.poisson(rng.uniform(0.1, 5), int(rng.integers(1, 30)))
        if counts.sum() == 0:
            continue
        assert gini(counts) == pytest.approx(naive.gini(counts.tolist()))
        assert skewness(counts) == pytest.approx(naive.skewness(counts.tolist()))
        assert 0 <= robin_hood(counts) <= gini(counts) + 1e-12
        assert -1e-12 <= atkinson(counts) <= 1


def test_summary_takes_scores_of_any_method():
    rows = np.random.default_rng(0).uniform(size=(30, 12))
    method = make_method("dis")
    found = measure_hubness(method.apply(rows, method.fit(rows)), k=3)
    assert found.k == 3
    assert found.largest >= 8
    assert measure_hubness(rows, k=3).largest == k_occurrence(rows, 3).max()


def test_refusals():
    for bad in (
        lambda: k_occurrence(np.zeros((0, 3))),
        lambda: k_occurrence(np.zeros((2, 3)), k=0),
        lambda: k_occurrence(np.zeros((2, 3), int), k=1),
        lambda: k_occurrence(np.full((2, 3), 5), k=1, items=3),
        lambda: k_occurrence(np.zeros((2, 1), int), k=2, items=3),
        lambda: k_occurrence(np.full((2, 3), np.nan)),
        lambda: atkinson(np.ones(3), eps=1.0),
    ):
        with pytest.raises(HubnessError):
            bad()
