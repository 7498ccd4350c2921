"""Bootstrap and permutation against renderings that draw and swap one query at a time."""

import itertools
import statistics
import time

import numpy as np
import pytest

from wordreel.errors import EvaluationError
from wordreel.retrieval import significance
from wordreel.retrieval.metrics import metric_of, retrieval_metrics
from wordreel.retrieval.significance import compare

METRICS = ("R1", "R5", "R7", "Rsum", "Geom", "MdR", "MnR")


def naive_figure(name, ranks):
    ranks = [float(rank) for rank in ranks]

    def share(k):
        return 100 * sum(rank == 1 if k == 1 else rank < k + 1 for rank in ranks) / len(ranks)

    if name == "MdR":
        return statistics.median(ranks)
    if name == "MnR":
        return statistics.fmean(ranks)
    if name == "Rsum":
        return share(1) + share(5) + share(10)
    if name == "Geom":
        return (share(1) * share(5) * share(10)) ** (1 / 3)
    return share(int(name[1:]))


def naive_bootstrap(name, a, b, groups, samples, seed):
    rng = np.random.default_rng(seed)
    members = [np.flatnonzero(groups == group) for group in np.unique(groups)]
    made = []
    for _ in range(samples):
        picked = np.concatenate([members[g] for g in rng.integers(len(members), size=len(members))])
        made.append(naive_figure(name, b[picked]) - naive_figure(name, a[picked]))
    return np.array(made)


def naive_exact(name, a, b, groups):
    """Every way to swap groups, one by one."""
    seen = abs(naive_figure(name, b) - naive_figure(name, a))
    names = np.unique(groups)
    as_large = 0
    for ways in itertools.product([False, True], repeat=len(names)):
        swap = np.isin(groups, names[list(ways)])
        made = naive_figure(name, np.where(swap, a, b)) - naive_figure(name, np.where(swap, b, a))
        as_large += abs(made) >= seen - 1e-9
    return as_large / 2 ** len(names)


def two_runs(rng, size, most=12):
    a = rng.integers(2, 2 * most, size) / 2
    return a, np.maximum(1, a + rng.integers(-4, 4, size) / 2)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("grouped", [False, True])
def test_all_swaps_of_a_small_case(metric, grouped):
    rng = np.random.default_rng(5)
    for _ in range(8):
        size = int(rng.integers(1, 9))
        a, b = two_runs(rng, size)
        groups = rng.integers(0, 4, size) if grouped else np.arange(size)
        found = compare(a, b, metric, groups=groups if grouped else None, samples=600)
        assert found.exact
        assert found.p_value == pytest.approx(naive_exact(metric, a, b, groups))
        assert found.difference == pytest.approx(naive_figure(metric, b) - naive_figure(metric, a))
        assert (found.queries, found.groups) == (size, len(np.unique(groups)))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("few", [10**9, 0])  # unit by unit, and by kinds of units
@pytest.mark.parametrize("grouped", [False, True])
def test_random_swaps_come_near_all_swaps(metric, few, grouped, monkeypatch):
    rng = np.random.default_rng(8)
    a, b = two_runs(rng, 9)
    groups = np.arange(9) if not grouped else np.repeat(np.arange(5), 2)[:9]
    wanted = naive_exact(metric, a, b, groups)
    monkeypatch.setattr(significance, "UNITS_PER_KIND", few)
    monkeypatch.setattr(significance, "all_ways", lambda units, samples: False)
    found = compare(a, b, metric, groups=groups, samples=4000)
    assert not found.exact
    assert found.p_value == pytest.approx(wanted, abs=0.03)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("few", [10**9, 0])
@pytest.mark.parametrize("grouped", [False, True])
def test_intervals_come_near_the_naive_ones(metric, few, grouped, monkeypatch):
    monkeypatch.setattr(significance, "UNITS_PER_KIND", few)
    rng = np.random.default_rng(2)
    a, b = two_runs(rng, 90, most=40)
    groups = np.repeat(np.arange(30), 3) if grouped else np.arange(90)
    made = naive_bootstrap(metric, a, b, groups, 700, 1)
    found = compare(a, b, metric, groups=groups if grouped else None, samples=2000, level=0.8)
    step = {"MdR": 0.25, "MnR": 0}.get(metric, 100 / 90)  # all but means differ in steps
    near = 0.25 * made.std() + step
    assert [found.low, found.high] == pytest.approx(list(np.quantile(made, [0.1, 0.9])), abs=near)


def test_medians_of_counts_equal_the_medians_of_repeated_ranks():
    rng = np.random.default_rng(0)
    ranks = np.unique(rng.integers(2, 60, 20) / 2)
    totals = rng.integers(0, 4, (200, len(ranks))).astype(float)
    totals[:, 3] += 1
    wanted = [np.median(np.repeat(ranks, row.astype(int))) for row in totals]
    assert significance._medians(ranks, totals, totals.sum(axis=1)).tolist() == wanted


def test_medians_of_many_groups_need_only_the_ranks_near_the_middle(monkeypatch):
    rng = np.random.default_rng(3)
    a, b = two_runs(rng, 3000, most=200)
    groups = np.repeat(np.arange(600), 5)
    near = compare(a, b, "MdR", groups=groups, samples=300)
    monkeypatch.setattr(significance, "MEDIAN_SIGMAS", 1e9)
    every = compare(a, b, "MdR", groups=groups, samples=300)
    assert (near.difference, near.low, near.high) == (every.difference, every.low, every.high)
    assert near.p_value == pytest.approx(every.p_value, abs=0.1)


def test_figures_by_name_are_those_of_recall():
    ranks = np.random.default_rng(0).integers(2, 200, 77) / 2
    for name in (*METRICS, "R50", "R10"):
        assert float(metric_of(name).compute(ranks)) == pytest.approx(naive_figure(name, ranks))
    short = {"R1": "r1", "R50": "r50", "Rsum": "rsum", "Geom": "geometric_mean", "MdR": "median_rank"}
    for name, field in short.items():
        assert float(metric_of(name).compute(ranks)) == pytest.approx(
            getattr(retrieval_metrics(ranks), field)
        )


def test_a_run_against_itself():
    ranks = np.random.default_rng(0).integers(1, 50, 200).astype(float)
    for metric in METRICS:
        found = compare(ranks, ranks, metric, samples=200)
        assert (found.difference, found.low, found.high, found.p_value) == (0, 0, 0, 1)


def test_luck_is_called_significant_as_often_as_it_should_be():
    rng = np.random.default_rng(0)
    p = []
    for _ in range(300):
        pairs = rng.integers(1, 4, (2, 60)).astype(float)
        p.append(compare(*pairs, "R1", samples=400).p_value)
    assert 0.01 < np.mean(np.array(p) <= 0.05) < 0.09


def test_captions_of_one_video_are_no_independent_witnesses():
    # Thirty videos, twenty captions each that all agree: far less evidence than six hundred queries.
    rng = np.random.default_rng(0)
    video = np.repeat(np.arange(30), 20)
    a, b = rng.integers(1, 3, 30)[video].astype(float), rng.integers(1, 3, 30)[video].astype(float)
    alone, grouped = compare(a, b, "R1"), compare(a, b, "R1", groups=[f"video{v}" for v in video])
    assert grouped.groups == 30
    assert grouped.p_value > 3 * alone.p_value
    assert grouped.high - grouped.low > 3 * (alone.high - alone.low)


def test_the_same_seed_makes_the_same_answer():
    a, b = two_runs(np.random.default_rng(0), 300)
    for metric in ("R1", "MdR", "MnR"):
        assert compare(a, b, metric, samples=300, seed=4) == compare(a, b, metric, samples=300, seed=4)


def test_queries_that_ask_nothing_do_not_count():
    a, b = two_runs(np.random.default_rng(0), 40)
    holes = np.insert(a, [3, 9], np.nan), np.insert(b, [3, 9], np.nan)
    groups = np.insert(np.arange(40), [3, 9], [99, 98])
    assert compare(*holes, "R5", groups=groups, samples=50) == compare(
        a, b, "R5", groups=np.arange(40), samples=50
    )


def test_answers_that_were_not_found_count_for_recall_only():
    a, b = np.array([1.0, np.inf, 3.0]), np.array([1.0, 2.0, np.inf])
    assert compare(a, b, "R5").difference == 0
    with pytest.raises(EvaluationError, match="not retrieved"):
        compare(a, b, "MnR")


def test_thirty_thousand_queries_take_no_time():
    a, b = two_runs(np.random.default_rng(0), 30_000, most=80)
    start = time.process_time()
    for metric in ("R1", "R5", "R10", "Rsum", "Geom"):
        compare(a, b, metric)
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    ("a", "b", "options", "message"),
    [
        ([1, 2], [1], {}, "same queries"),
        ([[1, 2]], [[1, 2]], {}, "same queries"),
        ([1, np.nan], [1, 2], {}, "query 1 has a right answer in one run"),
        ([np.nan], [np.nan], {}, "no queries"),
        ([0, 1], [1, 1], {}, "count from 1"),
        ([1, 2], [1, 2], {"groups": [1]}, "as many groups"),
        ([1, 2], [1, 2], {"metric": "R0"}, "no metric 'R0'"),
        ([1, 2], [1, 2], {"metric": "recall"}, "known are R1"),
        ([1, 2], [1, 2], {"samples": 0}, "samples"),
        ([1, 2], [1, 2], {"level": 1}, "level"),
    ],
)
def test_what_cannot_be_compared(a, b, options, message):
    with pytest.raises(EvaluationError, match=message):
        compare(np.array(a, float), np.array(b, float), **options)
