import threading

import numpy as np
import pytest
from tests.index.naive import check_search, correction_of, unit_vectors, whole_numbers

from wordreel.index import fastscan, groups
from wordreel.index.base import Correction
from wordreel.index.exact import ExactIndex

pytest.importorskip("faiss")


def built(folder, case):
    fastscan.BUILDER.build(folder, case[0], case[1])
    return fastscan.BUILDER.open(folder, case[0], case[1])


@pytest.fixture
def small(monkeypatch):
    """Sizes at which a few hundred items fill several groups, chunks and shards."""
    monkeypatch.setattr(fastscan, "FEW", 20)
    monkeypatch.setattr(groups, "FEW", 4)
    monkeypatch.setattr(fastscan, "CHUNK", 64)
    monkeypatch.setattr(fastscan, "ONE_SHARD", 96)
    monkeypatch.setattr(fastscan, "FIRST", 8)
    monkeypatch.setattr(fastscan, "CANDIDATES", 150)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["plain", "corrected", "gated"])
def test_with_enough_candidates_searches_equal_the_definition(seed, kind, small, tmp_path):
    rng = np.random.default_rng(seed)
    case = unit_vectors(rng, int(rng.integers(400, 600)))
    index = built(tmp_path, case)
    assert not index.exact
    assert len({type(group.items) for group in index._groups}) == 2, "compressed and direct"
    correction = correction_of(kind, rng, case[4])
    check_search(index, case, 5, rng.random(len(case[0])) < 0.8, correction)
    check_search(index, case, 5, None, correction)
    few = np.zeros(len(case[0]), bool)
    few[rng.integers(0, len(few), 3)] = True
    check_search(index, case, 5, few, correction)


def test_a_query_that_all_items_suit_equally_has_the_first_as_its_best(small, tmp_path):
    case = whole_numbers(np.random.default_rng(0), 400, queries=1)
    case[3][:] = 0
    check_search(built(tmp_path, case), case, 5, None, None)


@pytest.fixture(scope="module")
def gallery():
    """Items of one group, and queries that all items of a cluster suit about equally."""
    rng = np.random.default_rng(0)
    return unit_vectors(rng, 3_000, queries=40, experts=1, dim=48, present=1.1)


@pytest.fixture
def index(gallery, small, tmp_path, monkeypatch):
    return built(tmp_path, gallery)


def recall(index, gallery, allowed=None, correction=None):
    items, available, queries, weights, _ = gallery
    true = ExactIndex(items, available).search(queries, weights, 10, allowed, correction).rows
    found = index.search(queries, weights, 10, allowed, correction).rows
    pairs = [(set(a) - {-1}, set(b)) for a, b in zip(true.tolist(), found.tolist(), strict=True)]
    return np.mean([len(want & got) / len(want) for want, got in pairs])


def test_recall_holds_plain_corrected_and_after_another_correction(index, gallery):
    rng = np.random.default_rng(1)
    for scale in (0.05, 0.4):  # the second of them reorders whole clusters
        correction = Correction((scale * rng.random(3_000)).astype(np.float32))
        assert recall(index, gallery, correction=correction) > 0.97
        assert recall(index, gallery) > 0.97


def test_a_bias_is_part_of_the_scan(index, gallery, monkeypatch):
    """Candidates of a plain scan do not hold the corrected best, so re-ranking them would not do."""
    correction = Correction((0.4 * np.random.default_rng(1).random(3_000)).astype(np.float32))
    pack = fastscan.FastScanItems._pack
    with monkeypatch.context() as plain:
        plain.setattr(fastscan.FastScanItems, "_pack", lambda self, bias: pack(self, np.zeros_like(bias)))
        without = recall(index, gallery, correction=correction)
    assert without < 0.9
    assert recall(index, gallery, correction=Correction(correction.bias.copy())) > without


@pytest.mark.parametrize("share", [0.5, 0.05, 0.003])
def test_filters_keep_their_recall(index, gallery, share):
    allowed = np.random.default_rng(2).random(3_000) < share
    assert recall(index, gallery, allowed) > 0.97


def test_a_filter_against_the_query_keeps_its_recall(index, gallery, monkeypatch):
    """Only items that the queries rank last are allowed."""
    monkeypatch.setattr(fastscan, "DEEPEST", 600)
    items, available, queries, weights, _ = gallery
    scores = ExactIndex(items, available).scores(queries, weights, slice(None)).max(axis=0)
    allowed = scores <= np.quantile(scores, 0.3)
    assert recall(index, gallery, allowed) > 0.97


def test_threads_with_different_corrections_do_not_disturb_each_other(index, gallery):
    rng = np.random.default_rng(3)
    corrections = [None, *(Correction((0.3 * rng.random(3_000)).astype(np.float32)) for _ in range(2))]
    results = []

    def work(correction):
        for _ in range(3):
            results.append(recall(index, gallery, correction=correction))  # noqa: PERF401

    threads = [threading.Thread(target=work, args=(one,)) for one in corrections]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 9
    assert min(results) > 0.97


@pytest.mark.parametrize("name", ["codes.bin", "centroids.bin", "directions.bin"])
def test_files_that_were_cut_are_refused(name, index, gallery, tmp_path):
    path = tmp_path / name
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(ValueError):
        fastscan.BUILDER.open(tmp_path, gallery[0], gallery[1])


def test_a_search_scores_more_items_the_less_its_codes_tell():
    """Approximate scores are off by more and more."""
    rng = np.random.default_rng(0)
    true = np.sort(rng.random(4_000).astype(np.float32) * 0.1)[::-1].copy()
    full = groups.FullVectors(true[:, None], np.arange(4_000), None)
    nothing = np.zeros((1, 1), np.float32)
    items = fastscan.FastScanItems(full, nothing.astype(np.uint8), nothing, nothing)
    counts = []
    for noise in (0.0001, 0.005, 0.02):
        near = true + noise * rng.standard_normal(4_000).astype(np.float32)
        order = np.argsort(-near)
        bounds = np.append(near[order], -np.inf)
        scores, rest = items._candidates(np.ones(1, np.float32), order, bounds, 10, None)
        assert set(range(10)) <= set(order[: len(scores)].tolist())
        assert true[order[len(scores) :]].max(initial=-np.inf) <= rest.most
        counts.append(len(scores))
    assert counts[0] == fastscan.FIRST + 10
    assert counts[0] < counts[1] < counts[2]


def test_a_penalty_holds_the_same_bias_whatever_the_filter(index):
    rng = np.random.default_rng(4)
    bias, allowed = rng.random(3_000).astype(np.float32), rng.random(3_000) < 0.5
    (filtered,), (plain,) = index._penalties(allowed, bias), index._penalties(None, bias)
    assert filtered.bias is plain.bias
    assert filtered.count == np.count_nonzero(allowed)
    np.testing.assert_array_equal(filtered.of(slice(None)), np.where(allowed, bias, np.inf))
    assert index._penalties(np.ones(3_000, bool), None) == [None]


@pytest.mark.parametrize("corrected", [False, True])
def test_no_other_item_scores_above_the_rest(index, gallery, corrected):
    items, available, queries, weights, bias = gallery
    found = index.best(queries, weights, 5, None, bias if corrected else None)
    scores = ExactIndex(items, available).scores(queries, weights, slice(None))
    scores = scores - bias if corrected else scores
    for query, own in enumerate(scores):
        rest = found.rest(query)
        assert set(found.rows[query].tolist()) <= set(rest.rows.tolist())
        assert len(rest.rows) < len(items) / 2
        assert np.delete(own, rest.rows).max() <= rest.most < own.max() + 0.1
