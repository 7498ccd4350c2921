"""The measures of a confidence against slow twins."""

import numpy as np
import pytest

from wordreel.banks.confidence_check import auprc, auroc, calibration_error, check, measure, table
from wordreel.errors import QueryError
from wordreel.hubness.confidence import Confidence


def naive_auprc(values, right):
    """Walk down the distinct thresholds; add precision times the recall gained."""
    area, before = 0.0, 0.0
    for threshold in sorted(set(values), reverse=True):
        passed = [r for v, r in zip(values, right, strict=True) if v >= threshold]
        recall = sum(passed) / sum(right)
        area += (recall - before) * sum(passed) / len(passed)
        before = recall
    return area


def naive_auroc(values, right):
    won = [
        1.0 if a > b else 0.5 if a == b else 0.0
        for a, r in zip(values, right, strict=True)
        if r
        for b, w in zip(values, right, strict=True)
        if not w
    ]
    return sum(won) / len(won)


def test_areas_equal_their_slow_twins():
    rng = np.random.default_rng(0)
    for seed in range(300):
        size = int(rng.integers(1, 40))
        kind = (np.float32, np.float64, np.float16)[seed % 3]
        values = rng.normal(size=size) if seed % 2 else rng.integers(0, 4, size) / 3
        values, right = values.astype(kind), rng.random(size) < 0.3
        if right.any():
            assert auprc(values, right) == pytest.approx(naive_auprc(values, right), abs=1e-12)
        else:
            assert auprc(values, right) is None
        if right.any() and not right.all():
            assert auroc(values, right) == pytest.approx(naive_auroc(values, right), abs=1e-12)
        else:
            assert auroc(values, right) is None


def test_areas_of_known_cases():
    right = np.array([True, True, False, False])
    assert auprc(np.array([4, 3, 2, 1.0]), right) == 1
    assert auroc(np.array([4, 3, 2, 1.0]), right) == 1
    assert auroc(np.array([1, 2, 3, 4.0]), right) == 0
    assert auprc(np.zeros(4), right) == 0.5
    assert auroc(np.zeros(4), right) == 0.5
    with pytest.raises(QueryError, match="cannot be ranked"):
        auprc(np.array([np.nan, 1]), np.array([True, False]))
    with pytest.raises(QueryError, match="one length"):
        auroc(np.zeros(3), right)


def test_calibration_error():
    rng = np.random.default_rng(1)
    chance = rng.random(60_000)
    right = rng.random(60_000) < chance
    assert calibration_error(chance, right) < 0.01
    assert calibration_error(chance**2, right) == pytest.approx(1 / 6, abs=0.01)
    assert calibration_error(np.ones(10), np.zeros(10, bool)) == 1
    # Many equal values: which of them are right first must not matter.
    same = np.full(100, 0.3)
    first = np.arange(100) < 30
    assert calibration_error(same, first) == pytest.approx(0, abs=1e-12)
    assert calibration_error(same, first[::-1]) == pytest.approx(0, abs=1e-12)
    distinct, truth = rng.permutation(45) / 45, rng.random(45) < 0.5
    order = np.argsort(distinct)
    slow = sum(abs(distinct[order[i : i + 3]].sum() - truth[order[i : i + 3]].sum()) for i in range(0, 45, 3))
    assert calibration_error(distinct, truth) == pytest.approx(slow / 45)


def test_measure_counts_what_it_says():
    scores = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.5]])
    sure = np.array([[0.8, 0.0], [0.1, 0.4], [0.2, 0.1]])
    found = measure(scores, np.array([0, 1, -1]), sure)
    assert (found["queries"], found["videos"], found["without_answer"]) == (3, 2, 1)
    assert found["top_right"] == pytest.approx(2 / 3)
    assert found["pairs_auprc"] == {"similarity": 1.0, "confidence": 1.0}
    assert found["top_auroc"] == {"similarity": 1.0, "confidence": 1.0}
    assert found["mean_confidence"] == pytest.approx((0.8 + 0.4 + 0.2) / 3)
    assert found["cut_offs"][1] == {"min_confidence": 0.2, "kept": 1.0, "right": pytest.approx(2 / 3)}
    assert found["cut_offs"][4] == {"min_confidence": 0.7, "kept": pytest.approx(1 / 3), "right": 1.0}
    assert measure(scores, np.array([-1, -1, -1]), sure)["pairs_auprc"]["confidence"] is None


def hubby(rng, queries, videos):
    """Items of different level and spread, the same for bank and queries; answers are 4 spreads up."""
    level, spread = rng.normal(0, 0.1, videos), rng.uniform(0.02, 0.2, videos)
    bank = level + spread * rng.normal(size=(800, videos))
    right = rng.integers(0, videos, queries)
    scores = level + spread * rng.normal(size=(queries, videos))
    scores[np.arange(queries), right] += 4 * spread[right]
    return bank, scores, right


def test_check_sees_that_a_bank_helps_where_items_differ():
    bank, scores, right = hubby(np.random.default_rng(2), 400, 30)
    found = check(Confidence.fit(bank), scores, None, right)
    for gallery in ("whole", "halves"):
        pairs = found[gallery]["pairs_auprc"]
        assert pairs["confidence"] > pairs["similarity"] + 0.1
    assert found["whole"]["without_answer"] == 0
    assert found["halves"]["without_answer"] == pytest.approx(200, abs=40)
    best = np.tile(np.arange(30), (400, 1))
    assert check(Confidence.fit(bank), scores, best, right) == found
    text = table(found)
    assert text.count("\n") == 6
    assert len({line.count("|") for line in text.splitlines()}) == 1


def test_refusals():
    good = np.zeros((2, 3))
    for scores, right, sure in (
        (good, np.array([0, 1]), np.zeros((2, 2))),
        (good, np.array([0, 3]), good),
        (good, np.array([0, -2]), good),
        (good, np.array([0]), good),
        (np.zeros((0, 3)), np.empty(0, int), np.zeros((0, 3))),
    ):
        with pytest.raises(QueryError):
            measure(scores, right, sure)
