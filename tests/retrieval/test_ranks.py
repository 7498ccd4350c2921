import numpy as np
import pytest

from wordreel.errors import EvaluationError
from wordreel.retrieval.metrics import recall_at, retrieval_metrics
from wordreel.retrieval.ranks import ranks_against, ranks_of


def naive_rank(row, right):
    """Sort, and take the mean of the places the right score could stand in; what is no number stands last."""
    ordered = sorted((-np.inf if np.isnan(value) else value for value in row), reverse=True)
    own = -np.inf if np.isnan(row[right]) else row[right]
    places = [i + 1 for i, value in enumerate(ordered) if value == own]
    return sum(places) / len(places)


@pytest.mark.parametrize("holes", [0, 0.2])
@pytest.mark.parametrize("seed", range(5))
def test_ranks_equal_the_sorted_definition(seed, holes):
    rng = np.random.default_rng(seed)
    sims = rng.integers(0, 6, (30, 17)).astype(np.float32)
    sims[rng.random(sims.shape) < holes] = np.nan
    right = rng.integers(0, 17, 30)
    expected = [naive_rank(row.tolist(), r) for row, r in zip(sims, right, strict=True)]
    assert ranks_of(sims, right).tolist() == expected
    own = sims[np.arange(30), right]
    assert ranks_against(sims, own[:, None]).tolist() == expected


@pytest.mark.parametrize("kind", [np.float16, np.float64, np.int32, np.uint8])
def test_any_kind_of_number(kind):
    sims = np.array([[1, 3, 2], [5, 5, 0]], kind)
    assert ranks_of(sims, np.array([2, 0])).tolist() == [2, 1.5]


def test_a_right_answer_that_is_no_number_is_last_not_first():
    sims = np.array([[np.nan, 0.1, -5.0]], np.float32)
    assert ranks_of(sims, np.array([0])).tolist() == [3]


def test_a_model_that_knows_nothing_gets_the_middle():
    figures = retrieval_metrics(ranks_of(np.zeros((6, 6), np.float32), np.arange(6)))
    assert (figures.r1, figures.median_rank, figures.mean_rank) == (0, 3.5, 3.5)


def test_a_two_way_tie_at_the_top_is_not_a_first_place():
    sims = np.eye(4, dtype=np.float32)
    sims[0, 1] = 1
    figures = retrieval_metrics(ranks_of(sims, np.arange(4)))
    assert (figures.r1, figures.r5, figures.mean_rank) == (75, 100, 1.125)


def test_a_tie_across_the_fifth_place_counts():
    assert retrieval_metrics(np.array([5.5])).r5 == 100
    assert retrieval_metrics(np.array([6.0])).r5 == 0


def test_every_figure_by_hand():
    found = retrieval_metrics(np.array([1, 1, 3, 8, 40, 60, np.nan, 2]))
    assert found.queries == 7
    assert (found.r1, found.r5) == (pytest.approx(200 / 7), pytest.approx(400 / 7))
    assert (found.r10, found.r50) == (pytest.approx(500 / 7), pytest.approx(600 / 7))
    assert (found.median_rank, found.mean_rank) == (3, pytest.approx(115 / 7))
    assert found.geometric_mean == pytest.approx((200 * 400 * 500) ** (1 / 3) / 7)
    assert found.rsum == pytest.approx(1100 / 7)
    assert recall_at(np.array([1, 7, 300.0]), 299) == pytest.approx(200 / 3)


def test_an_answer_that_was_not_found():
    found = retrieval_metrics(np.array([1, np.inf, np.inf]))
    assert (found.r50, found.median_rank, found.mean_rank) == (pytest.approx(100 / 3), np.inf, np.inf)


def test_what_cannot_be_measured():
    for empty in (np.zeros(0), np.array([np.nan])):
        with pytest.raises(EvaluationError, match="no queries with a right answer"):
            retrieval_metrics(empty)
    with pytest.raises(EvaluationError, match="at 1 or more"):
        recall_at(np.ones(3), 0)
