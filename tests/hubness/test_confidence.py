"""Confidence against a slow twin, over every awkward kind of similarity and every change of a bank."""

import math
import statistics

import numpy as np
import pytest
from safetensors import safe_open
from tests.hubness.cases import case

from wordreel.errors import HubnessError
from wordreel.hubness.confidence import CHECKED, CROWD, NEAR, PRIOR, USUAL, Confidence
from wordreel.hubness.scores import ranking_scores
from wordreel.hubness.similarity_sources import product
from wordreel.hubness.standard_score import FURTHEST, SHRINK, StandardScore, levels
from wordreel.hubness.state import State
from wordreel.types import Calibration


def naive_levels(bank):
    """μ and r of every column, one number at a time."""
    columns = [[float(x) for x in column] for column in np.asarray(bank, np.float64).T]
    means = [math.fsum(column) / len(column) for column in columns]
    spreads = [
        (math.fsum((x - mean) ** 6 for x in column) / len(column)) ** (1 / 6)
        for column, mean in zip(columns, means, strict=True)
    ]
    spreads = [
        0.0 if r <= 1e-6 * abs(mean) or len(set(column)) == 1 else r
        for r, mean, column in zip(spreads, means, columns, strict=True)
    ]
    some = [r for r in spreads if r > 0]
    if not some:
        return means, [1.0] * len(means)
    usual, size = statistics.median(some), len(bank)
    shrunk = [
        math.sqrt((size * r * r + SHRINK * usual * usual) / (size + SHRINK)) if r else usual for r in spreads
    ]
    return means, [math.sqrt(r * usual) for r in shrunk]


def naive(bank, rows, calibration=CHECKED):
    """p for every pair, straight from the formula."""
    means, spreads = naive_levels(bank)
    usual = USUAL * statistics.median(spreads)
    found = []
    for row in np.asarray(rows, np.float64):
        t = [max(-FURTHEST, min(FURTHEST, (s - m) / r)) for s, m, r in zip(row, means, spreads, strict=True)]
        n = len(t)
        centre = math.fsum(row) / n
        apart = math.sqrt((math.fsum((s - centre) ** 2 for s in row) + PRIOR * usual**2) / (n + PRIOR))
        best = sorted(row)[-CROWD:]
        chances = []
        for s, x in zip(row, t, strict=True):
            steps = [max(-FURTHEST, min(FURTHEST, (other - s) / (NEAR * apart))) for other in best]
            height = calibration.height * x + calibration.likeness * s - calibration.toll
            height -= calibration.crowd * math.log(math.fsum(map(math.exp, steps)))
            height -= calibration.growth * math.log((n + 50) / 450)
            chances.append(1 / (1 + math.exp(-max(-FURTHEST, min(FURTHEST, height)))))
        found.append(chances)
    return np.array(found)


def steady(rng, queries, items, scale=0.1):
    return rng.normal(0, scale, (queries, items)) + rng.normal(0, scale, items)


@pytest.mark.parametrize("block", range(10))
def test_equals_the_slow_twin(block):
    for seed in range(block * 200, block * 200 + 200):
        given = case(seed)
        before = given.bank.copy(), given.rows.copy()
        fitted = Confidence.fit(given.bank)
        found = fitted.of(given.rows)
        means, spreads = naive_levels(given.bank)
        assert np.allclose(levels(fitted.state)[0], means, rtol=1e-6, atol=1e-6)
        assert np.allclose(levels(fitted.state)[1], spreads, rtol=1e-5)
        assert np.allclose(found, naive(given.bank, given.rows), rtol=1e-4, atol=1e-6), (seed, given.kind)
        assert found.dtype == np.float32
        assert np.isfinite(found).all()
        assert found.min() >= 0
        assert found.max() <= 1
        assert np.array_equal(before[0], given.bank)
        assert np.array_equal(before[1], given.rows)


def test_a_model_whose_similarities_mean_the_same_everywhere_counts_them():
    rng = np.random.default_rng(0)
    bank, rows = steady(rng, 300, 20), steady(rng, 12, 20)
    own = Calibration(height=0.9, crowd=0.4, growth=0.8, likeness=7.0, toll=5.0)
    assert np.allclose(Confidence.fit(bank, own).of(rows), naive(bank, rows, own), rtol=1e-4, atol=1e-6)
    shifted = Confidence.fit(bank + 0.2, own).of(rows + 0.2)
    assert (shifted > Confidence.fit(bank, own).of(rows)).all()  # as unusual, and more alike


def test_grows_with_the_score_and_keeps_ties():
    rng = np.random.default_rng(0)
    fitted = Confidence.fit(steady(rng, 300, 20))
    row = rng.normal(0, 0.1, 20)
    climbing = np.tile(row, (50, 1))
    climbing[:, 7] = np.linspace(-2, 2, 50)
    assert (np.diff(fitted.of(climbing)[:, 7]) >= 0).all()
    assert fitted.of(climbing)[-1, 7] > 0.9
    rivals = fitted.rivals(row)
    fixed = fitted.of(climbing[:, [7]], np.array([7]), rivals)
    assert (np.diff(fixed[:, 0]) >= 0).all()
    assert 0.99 < fixed.max() <= 1
    twins = Confidence.fit(np.repeat(steady(rng, 50, 1), 2, axis=1))
    assert np.unique(twins.of(np.array([0.3, 0.3]))).size == 1


def test_the_scale_and_shift_of_similarities_do_not_matter():
    rng = np.random.default_rng(1)
    bank, rows = steady(rng, 400, 30), steady(rng, 9, 30)
    plain = Confidence.fit(bank).of(rows)
    assert np.allclose(Confidence.fit(100 * bank + 7).of(100 * rows + 7), plain, rtol=1e-4, atol=1e-7)
    assert np.allclose(Confidence.fit(1e4 * bank).of(1e4 * rows), plain, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("value", [0.0, 0.3, -1e4, 1e4, 1e30, -1e30])
def test_banks_that_know_nothing_still_answer(value):
    one = Confidence.fit(np.full((1, 4), value))
    constant = Confidence.fit(np.full((60, 4), value))
    for fitted in (one, constant):
        assert levels(fitted.state)[1].tolist() == [1.0] * 4
        found = fitted.of(np.array([[value, value, -1e30, 1e30]]))
        assert np.isfinite(found).all()
        assert found[0, 2] <= found[0, 0] == found[0, 1] <= found[0, 3]
        assert fitted.of(np.full(4, value)).max() < 0.5  # as usual as can be: nothing to be sure of


def test_a_constant_column_takes_the_usual_spread():
    rng = np.random.default_rng(2)
    bank = steady(rng, 200, 5)
    bank[:, 3] = 0.25
    fitted = Confidence.fit(bank)
    others = Confidence.fit(np.delete(bank, 3, axis=1))
    spread = statistics.median(naive_levels(np.delete(bank, 3, axis=1))[1])
    assert levels(fitted.state)[1][3] == pytest.approx(spread, rel=0.05)
    scores = ranking_scores(StandardScore().apply(np.full((1, 5), 0.25), fitted.state))
    assert scores[0, 3] == 0
    assert np.allclose(np.delete(levels(fitted.state)[1], 3), levels(others.state)[1])


def test_extreme_scores_stay_between_nothing_and_one():
    fitted = Confidence.fit(steady(np.random.default_rng(3), 100, 6).astype(np.float32))
    rows = np.array([[1e30, -1e30, 1e4, -1e4, 0, 1e-30], [-1e30] * 6, [1e30] * 6])
    found = fitted.of(rows)
    assert np.isfinite(found).all()
    assert found[1].max() < 1e-6
    assert found[2].min() > 0.99
    for wrong in (np.nan, np.inf):
        with pytest.raises(HubnessError, match="finite"):
            fitted.of(np.array([wrong] * 6))


def test_some_items_with_the_rivals_of_all():
    rng = np.random.default_rng(4)
    fitted, rows = Confidence.fit(steady(rng, 150, 12)), steady(rng, 5, 12)
    whole, rivals = fitted.of(rows), fitted.rivals(rows)
    some = np.array([3, 9, 1])
    assert np.allclose(fitted.of(rows[:, some], some, rivals), whole[:, some], rtol=1e-5)
    each = np.argsort(-rows, axis=1)[:, :4]
    picked = np.take_along_axis(rows, each, axis=1)
    assert np.allclose(fitted.of(picked, each, rivals), np.take_along_axis(whole, each, axis=1), rtol=1e-5)
    assert np.allclose(fitted.of(rows[2]), whole[2])
    assert np.allclose(fitted.of(rows[2, some], some, fitted.rivals(rows[2])), whole[2, some], rtol=1e-5)
    with pytest.raises(HubnessError, match="rivals were given"):
        fitted.of(rows[:3, some], some, rivals)


def test_many_rows_are_worked_out_in_pieces(monkeypatch):
    rng = np.random.default_rng(5)
    fitted, rows = Confidence.fit(steady(rng, 40, 7)), steady(rng, 50, 7)
    items = np.tile(np.arange(7), (50, 1))
    whole = fitted.of(rows)
    monkeypatch.setattr("wordreel.hubness.confidence.AT_ONCE", 21)
    assert np.array_equal(fitted.of(rows), whole)
    assert np.array_equal(fitted.of(rows, items), whole)
    assert np.allclose(fitted.of(rows, items, fitted.rivals(rows)), whole, rtol=1e-5)


def test_changes_give_what_a_fit_from_the_start_gives():
    method = StandardScore()
    for seed in range(105):  # every kind with every dtype, and with a gallery of one
        given = case(seed)
        both = np.concatenate([given.bank, given.gallery])
        whole = Confidence.fit(both).of(given.rows)

        def same(state, rows=given.rows, wanted=whole, seed=seed):
            assert np.allclose(Confidence(state).of(rows), wanted, rtol=2e-3, atol=1e-5), seed

        same(method.fit(given.bank).merge(method.fit(given.gallery)))
        same(method.fit(given.bank).add(given.gallery))
        same(method.fit(iter([given.bank, given.gallery])))
        doubled = np.concatenate([both, both], axis=1)
        twice = method.fit(both).extend(both)
        same(twice, np.tile(given.rows, 2), Confidence.fit(doubled).of(np.tile(given.rows, 2)))
        same(twice.remove(np.arange(both.shape[1])))


def test_fits_from_embeddings_threads_and_as_a_method():
    rng = np.random.default_rng(7)
    bank, items = rng.normal(size=(700, 16)), rng.normal(size=(2000, 16))
    sims = bank @ items.T
    fitted = Confidence.fit(product(bank, items), threads=3)
    assert np.allclose(levels(fitted.state)[1], levels(Confidence.fit(sims, threads=1).state)[1], rtol=1e-5)
    with pytest.raises(HubnessError, match="one number per item"):
        _ = fitted.state.offset


def test_moments_of_damaged_files_are_refused(tmp_path):
    from safetensors.numpy import load_file, save_file

    path, good_path = tmp_path / "damaged", tmp_path / "good"
    fitted = StandardScore().fit(steady(np.random.default_rng(8), 30, 4))
    fitted.save(good_path)
    assert np.array_equal(levels(State.load(good_path))[1], levels(fitted)[1])
    with safe_open(str(good_path), framework="numpy") as file:
        header = file.metadata()
    good = load_file(good_path)
    sums, pivot = "queries/moments/sums", "queries/moments/pivot"
    for changed in (
        {sums: good[sums][:, :5].copy()},
        {sums: np.full_like(good[sums], np.nan)},
        {pivot: good[pivot].astype(np.float32)},
        {pivot: good[pivot][:2].copy()},
    ):
        save_file(good | changed, str(path), metadata=header)
        with pytest.raises(HubnessError, match="fit the bank again"):
            State.load(path)


def test_refusals():
    fitted = Confidence.fit(steady(np.random.default_rng(9), 20, 4))
    for scores, items, said in (
        (np.zeros(3), None, "name them"),
        (np.zeros((2, 2)), np.array([0, 4]), "from 0 to 3"),
        (np.zeros((2, 2)), np.array([0, 1, 2]), "shape"),
        (np.zeros((2, 2)), np.array([0.0, 1.0]), "item numbers"),
        (np.zeros((1, 2, 2)), None, "scores are numbers"),
        (np.array(["a"] * 4), None, "scores are numbers"),
    ):
        with pytest.raises(HubnessError, match=said):
            fitted.of(scores, items)
    with pytest.raises(HubnessError, match="rivals"):
        fitted.of(np.zeros((3, 4)), rivals=fitted.rivals(np.zeros((2, 4))))
    with pytest.raises(HubnessError, match="height"):
        Calibration(-1.0, 0.0, 0.0, 0.0, 0.0)
    with pytest.raises(HubnessError, match="toll"):
        Calibration(1.0, 0.0, 0.0, 0.0, np.inf)
    with pytest.raises(HubnessError, match="no queries"):
        Confidence.fit(np.zeros((0, 4)))


def test_shift_and_gain_of_the_scores_do_not_matter():
    """CLIP's narrow band of cosines, as it is or shifted and scaled, gives the same confidences."""
    rng = np.random.default_rng(3)
    bank, scores = rng.normal(0.18, 0.03, (400, 20)), rng.normal(0.18, 0.03, (5, 20))
    scores[:, 4] += 0.12
    plain = Confidence.fit(bank).of(scores)
    moved = Confidence.fit(3 * (bank - 0.17)).of(3 * (scores - 0.17))
    assert plain[:, 4].min() > plain[:, 5:].max()
    np.testing.assert_allclose(moved, plain, atol=1e-5)
