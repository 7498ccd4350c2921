import numpy as np
import pytest

from wordreel.index.base import (
    Best,
    Correction,
    Index,
    PartedIndex,
    availability_groups,
    group_queries,
    merge_best,
)
from wordreel.index.exact import ExactIndex
from wordreel.models.similarity import mixture


class TwoSearches(Index):
    """An index that has only `best`: gates by the search that all back ends share."""

    name = "two"

    def __init__(self, inner):
        self.inner = inner

    @property
    def exact(self):
        return True

    def __len__(self):
        return len(self.inner)

    def scores(self, vectors, weights, rows):
        return self.inner.scores(vectors, weights, rows)

    def best(self, vectors, weights, k, allowed=None, bias=None):
        return self.inner.best(vectors, weights, k, allowed, bias)


def case(seed):
    """Small integers: exact in float32, and full of ties."""
    rng = np.random.default_rng(seed)
    n, e, d = int(rng.integers(1, 60)), 3, 4
    items = rng.integers(-2, 3, (n, e, d)).astype(np.float32)
    available = rng.random((n, e)) < 0.7
    items[~available] = 0
    queries = rng.integers(-2, 3, (5, e, d)).astype(np.float32)
    weights = rng.integers(0, 3, (5, e)).astype(np.float32)
    bias = rng.integers(-1, 2, n).astype(np.float32)
    return rng, items, available, queries, weights, bias


def equal(one, two):
    np.testing.assert_array_equal(one.rows, two.rows)
    np.testing.assert_array_equal(one.scores, two.scores)
    np.testing.assert_array_equal(one.corrected, two.corrected)


@pytest.mark.parametrize("seed", range(12))
def test_parts_and_shared_gates_search_as_one_exact_pass(seed):
    rng, items, available, queries, weights, bias = case(seed)
    n, k = len(items), int(rng.integers(1, 9))
    whole = ExactIndex(items, available)
    edge = int(rng.integers(0, n + 1))
    parts = PartedIndex([ExactIndex(items[s], available[s]) for s in (slice(edge), slice(edge, n))])
    rows = rng.permutation(n)
    np.testing.assert_array_equal(parts.scores(queries, weights, rows), whole.scores(queries, weights, rows))
    for allowed in (None, rng.random(n) < 0.6, np.zeros(n, bool)):
        for correction in (None, Correction(bias), Correction(bias, rng.random(n) < 0.5)):
            want = whole.search(queries, weights, k, allowed, correction)
            equal(TwoSearches(whole).search(queries, weights, k, allowed, correction), want)
            equal(parts.search(queries, weights, k, allowed, correction), want)
    assert len(parts) == n
    assert parts.exact


def test_an_index_of_parts_is_as_exact_as_its_parts():
    class Rough(TwoSearches):
        @property
        def exact(self):
            return False

    inner = ExactIndex(np.ones((2, 1, 1), np.float32), np.ones((2, 1), bool))
    assert not PartedIndex([inner, Rough(inner)]).exact


def test_short_lists_merge_into_padded_ones():
    empty = Best(np.zeros((1, 0), np.int64), np.zeros((1, 0), np.float32))
    one = Best(np.array([[3]]), np.array([[0.5]], np.float32))
    merged = merge_best([empty, one], 3)
    assert merged.rows.tolist() == [[3, -1, -1]]
    assert merged.scores.tolist() == [[0.5, -np.inf, -np.inf]]


@pytest.mark.parametrize("seed", range(4))
def test_groups_hold_every_row_once_and_rescaled_queries_give_the_mixture(seed):
    _, items, available, queries, weights, _ = case(seed)
    groups = availability_groups(available)
    assert sorted(row for _, rows in groups for row in rows.tolist()) == list(range(len(items)))
    assert len({tuple(pattern) for pattern, _ in groups}) == len(groups)
    for pattern, rows in groups:
        np.testing.assert_array_equal(available[rows], np.tile(pattern, (len(rows), 1)))
        product = group_queries(queries, weights, pattern) @ items[rows].reshape(len(rows), -1).T
        np.testing.assert_allclose(
            product, mixture(queries, weights, items[rows], available[rows]), atol=1e-5
        )
    assert availability_groups(np.zeros((0, 3), bool)) == []


def test_parts_know_a_filter_and_a_bias_again():
    """What an index makes of an array once is good for the next search, also where it is a part of it."""
    _, items, available, queries, weights, bias = case(0)
    seen = []

    class Recording(TwoSearches):
        def best(self, vectors, weights, k, allowed=None, bias=None):
            seen.append((allowed, bias))
            return super().best(vectors, weights, k, allowed, bias)

    half = len(items) // 2
    parts = [ExactIndex(items[some], available[some]) for some in (slice(half), slice(half, None))]
    index = PartedIndex([Recording(part) for part in parts])
    allowed = np.ones(len(items), bool)
    for _ in range(2):
        index.best(queries, weights, 3, allowed, bias)
    assert all(
        one is two for a, b in zip(seen[:2], seen[2:], strict=True) for one, two in zip(a, b, strict=True)
    )
    np.testing.assert_array_equal(np.concatenate([part for _, part in seen[:2]]), bias)
