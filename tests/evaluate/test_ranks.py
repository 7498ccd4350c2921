import numpy as np
import pytest

from wordreel.evaluate import ranks
from wordreel.evaluate.ranks import ranks_of, recall


def naive_rank(row, right):
    """Sort, find every place the right score could stand in, average."""
    ordered = sorted(row, reverse=True)
    places = [i + 1 for i, value in enumerate(ordered) if value == row[right]]
    return sum(places) / len(places)


@pytest.mark.parametrize("dense", [1, 10_000])  # the path for few scores above the right one, and for many
@pytest.mark.parametrize("seed", range(5))
def test_ranks_equal_the_sorted_definition(seed, dense, monkeypatch):
    monkeypatch.setattr(ranks, "DENSE", dense)
    rng = np.random.default_rng(seed)
    sims = rng.integers(0, 6, (30, 17)).astype(np.float32)
    right = rng.integers(0, 17, 30)
    expected = [naive_rank(row.tolist(), r) for row, r in zip(sims, right, strict=True)]
    assert ranks_of(sims, right).tolist() == expected


def test_a_model_that_knows_nothing_gets_the_middle():
    figures = recall(ranks_of(np.zeros((6, 6), np.float32), np.arange(6)))
    assert (figures.r1, figures.median_rank) == (0, 3.5)


def test_a_two_way_tie_at_the_top_is_not_a_first_place():
    sims = np.eye(4, dtype=np.float32)
    sims[0, 1] = 1
    figures = recall(ranks_of(sims, np.arange(4)))
    assert (figures.r1, figures.mean_rank) == (75, 1.125)


def test_nothing_to_average_is_an_error():
    with pytest.raises(ValueError, match="no queries"):
        recall(np.zeros(0))
