import numpy as np
import pytest

from wordreel.index.cached import DAMAGE
from wordreel.index.pq_reduction import BITS, WIDTH, Reduction, _bits, _packed, fit_reduction


def world(seed=0, count=600, rows=2, dim=12):
    """Items and queries with most of their variance in a few directions, not the same ones."""
    rng = np.random.default_rng(seed)
    scale = 0.5 ** np.arange(rows * dim)
    items = rng.normal(size=(count, rows * dim)) * rng.permutation(scale) + 1
    queries = rng.normal(size=(40, rows * dim)) * rng.permutation(scale)
    return items.astype(np.float32), queries.astype(np.float32)


def test_with_all_directions_products_are_those_of_the_full_vectors():
    items, queries = world()
    reduction = fit_reduction(items, queries, 2, most=24)
    every = sum(len(row.places) for row in reduction.rows)
    assert every < items.shape[1]
    kept = reduction.items(items)
    near = reduction.queries(queries)[:, : kept.shape[1]] @ kept.T
    left_out = near - queries @ items.T
    left_out -= left_out.mean(axis=1, keepdims=True)  # constant for a query: it changes no order
    assert left_out.std() < 0.01 * (queries @ items.T).std()


def test_directions_that_queries_never_ask_for_get_no_codes():
    rng = np.random.default_rng(1)
    items = rng.normal(size=(500, 8)).astype(np.float32)
    queries = np.zeros((50, 8), np.float32)
    queries[:, 4:] = rng.normal(size=(50, 4))
    plain = fit_reduction(items, None, 2, most=4)
    guided = fit_reduction(items, queries, 2, most=4)
    assert [len(row.places) for row in plain.rows] == [4, 4]
    assert [len(row.places) for row in guided.rows] == [0, 4]


@pytest.mark.parametrize("most", [2, 6, 10, 24])
def test_codes_are_shared_by_few_and_no_more_than_allowed(most):
    items, queries = world(2)
    reduction = fit_reduction(items, queries, 2, most)
    places = np.concatenate([row.places for row in reduction.rows])
    assert reduction.codes % 2 == 0
    assert len(np.unique(places)) == len(places)
    assert places.max() < reduction.codes * WIDTH
    assert len(np.unique(places // WIDTH)) <= most


def test_bits_are_those_of_reverse_water_filling():
    spread = np.array([16.0, 4.0, 1.0, 0.25])
    assert _bits(spread, 1.0).tolist() == [2.0, 1.0, 0.0, 0.0]
    assert _bits(np.array([2.0**20]), 1.0).tolist() == [2 * BITS]
    assert _packed(np.array([4.0, 2.0, 2.0, 1.0, 1.0, 1.0, 1.0, 0.5, 0.0])).tolist() == [
        0,
        1,
        1,
        2,
        2,
        2,
        2,
        3,
    ]


def test_a_reduction_is_written_and_read():
    items, queries = world(3)
    reduction = fit_reduction(items, queries, 2, 10)
    layout, numbers = reduction.layout(), reduction.numbers()
    assert Reduction.size(layout, 12) == len(numbers)
    again = Reduction.read(layout, 12, numbers)
    np.testing.assert_array_equal(again.items(items), reduction.items(items))
    np.testing.assert_array_equal(again.queries(queries), reduction.queries(queries))


@pytest.mark.parametrize(
    "damage",
    [
        {"codes": 3},
        {"codes": 0},
        {"coarse": 1},
        {"places": [[0, 0], []]},
        {"places": [[-1], []]},
        {"refined": [[0, 0]]},
        {"refined": [[0, 10**6]]},
        {"refined": [[0, 10**30]]},
    ],
)
def test_damaged_layouts_are_refused(damage):
    items, queries = world(4)
    reduction = fit_reduction(items, queries, 2, 10)
    layout = {**reduction.layout(), **damage}
    with pytest.raises(DAMAGE):
        Reduction.read(layout, 12, reduction.numbers()[: Reduction.size(layout, 12)])


def test_values_that_are_not_numbers_do_not_stop_it():
    items, queries = world(5)
    items[7, 3] = np.nan
    assert np.isfinite(fit_reduction(items, queries, 2, 10).numbers()).all()


def test_what_coarse_codes_leave_is_added_by_fine_ones():
    items, queries = world(6)
    reduction = fit_reduction(items, queries, 2, 40)
    assert reduction.codes > reduction.coarse
    reduced = reduction.items(items)
    near = np.round(reduced, 1)  # what codes might say
    asked, coarse = reduction.queries(queries), reduction.coarse * WIDTH
    both = asked[:, :coarse] @ near.T + asked[:, coarse:] @ reduction.remainder(reduced, near).T
    own = reduction.refined[:, 0]
    near[:, own] = reduced[:, own]
    np.testing.assert_allclose(both, asked[:, :coarse] @ near.T, atol=1e-4)
