"""Image-to-image figures against a rendering that sorts, and tries every order of what is tied."""

import itertools

import numpy as np
import pytest

from wordreel.errors import EvaluationError
from wordreel.lab.evaluate import instance
from wordreel.lab.evaluate.instance import (
    embedding_metrics,
    embedding_ranks,
    instance_metrics,
    item_ranks,
)


def matrix_ranks(similarities, labels):
    return item_ranks(lambda span: similarities[span], len(similarities), labels)


def matrix_metrics(similarities, labels, ks=(1, 2, 4, 8)):
    return instance_metrics(matrix_ranks(similarities, labels), ks)


def precision(right, cut):
    """AP of a ranking given as a list of right or not, after `cut` places."""
    hits, total = 0, 0.0
    for place, good in enumerate(right[:cut], 1):
        hits += good
        total += good * hits / place
    return total / sum(right)


def naive_item(row, labels, item):
    """First place of the right items' best score, and the mean AP and AP@R over every order of ties."""
    others = [other for other in range(len(row)) if other != item]
    right = {other for other in others if labels[other] == labels[item]}
    if not right:
        return np.nan, np.nan, np.nan
    levels = sorted({row[other] for other in others}, reverse=True)
    blocks = [[other in right for other in others if row[other] == level] for level in levels]
    before = 0
    for block in blocks:
        if any(block):
            first = np.mean(range(before + 1, before + len(block) + 1))
            break
        before += len(block)
    whole, cut = [], []
    for parts in itertools.product(*(list(itertools.permutations(block)) for block in blocks)):
        ranking = list(itertools.chain(*parts))
        whole.append(precision(ranking, len(ranking)))
        cut.append(precision(ranking, len(right)))
    return first, np.mean(whole), np.mean(cut)


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("block", [1, 20, 1 << 23])
def test_every_item_equals_the_naive_one(seed, block, monkeypatch):
    monkeypatch.setattr(instance, "BLOCK", block)
    rng = np.random.default_rng(seed)
    items = int(rng.integers(2, 8))
    labels = rng.integers(0, 3, items)
    labels[0] = labels[1]
    sims = rng.integers(0, (2, 4, 1000)[seed % 3], (items, items)).astype(np.float32)
    untouched = sims.copy()
    found = matrix_ranks(sims, labels)
    wanted = np.array([naive_item(row.tolist(), labels, item) for item, row in enumerate(sims)]).T
    assert found.first == pytest.approx(wanted[0], nan_ok=True)
    assert found.average_precision == pytest.approx(wanted[1], nan_ok=True)
    assert found.precision_to_r == pytest.approx(wanted[2], nan_ok=True)
    assert (sims == untouched).all()


@pytest.mark.parametrize("seed", range(4))
def test_larger_sets_without_ties(seed, monkeypatch):
    monkeypatch.setattr(instance, "BLOCK", 1000)
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 12, 150).astype(str)
    vectors = rng.normal(size=(150, 8)) + 2 * rng.normal(size=(12, 8))[labels.astype(int)]
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    sims = units @ units.T
    first, whole, cut = [], [], []
    for item in range(150):
        order = [other for other in np.argsort(-sims[item]) if other != item]
        right = [bool(labels[other] == labels[item]) for other in order]
        first.append(right.index(True) + 1)
        whole.append(precision(right, len(right)))
        cut.append(precision(right, sum(right)))
    found = embedding_ranks(vectors, labels)
    assert found.first.tolist() == first
    assert found.average_precision == pytest.approx(whole)
    assert found.precision_to_r == pytest.approx(cut)
    figures = embedding_metrics(vectors, labels, ks=(1, 3))
    assert figures.recall == {k: pytest.approx(100 * np.mean(np.array(first) <= k)) for k in (1, 3)}
    assert figures.mean_average_precision == pytest.approx(100 * np.mean(whole))
    assert figures.map_at_r == pytest.approx(100 * np.mean(cut))
    assert matrix_metrics(sims, labels, ks=(1, 3)).map_at_r == pytest.approx(figures.map_at_r)


def test_the_item_itself_is_never_an_answer():
    sims = np.full((4, 4), -1.0)
    sims[0, 1] = sims[1, 0] = sims[2, 3] = sims[3, 2] = 0.5
    for diagonal in (1.0, 0.5, -9.0, np.nan, np.inf):
        np.fill_diagonal(sims, diagonal)
        found = matrix_metrics(sims, [0, 0, 1, 1])
        assert (found.recall[1], found.mean_average_precision, found.map_at_r) == (100, 100, 100)


def test_an_item_alone_in_its_class_asks_nothing():
    found = matrix_metrics(np.eye(3), ["a", "a", "b"])
    assert (found.queries, found.items) == (2, 3)


def test_a_model_that_knows_nothing_gets_a_guess():
    # Two of each class: the right one may stand in any of five places.
    found = matrix_metrics(np.zeros((6, 6)), [0, 0, 1, 1, 2, 2], ks=(1, 3))
    assert found.mean_average_precision == pytest.approx(100 * np.mean(1 / np.arange(1, 6)))
    assert found.map_at_r == pytest.approx(20)
    assert found.recall == {1: 0, 3: 100}


def test_half_precision_and_whole_numbers():
    labels = [0, 0, 1, 1]
    vectors = np.array([[4, 0], [3, 1], [0, 2], [1, 4]])
    for kind in (np.float16, np.int16, np.float32):
        assert embedding_metrics(vectors.astype(kind), labels).recall[1] == 100


def test_a_thousand_places_of_sop():
    labels = np.repeat(np.arange(400), 5)
    vectors = np.random.default_rng(0).normal(size=(400, 16))[labels]
    vectors += 0.1 * np.random.default_rng(1).normal(size=vectors.shape)
    found = embedding_metrics(vectors.astype(np.float32), labels, (1, 10, 100, 1000))
    assert found.recall == {1: 100, 10: 100, 100: 100, 1000: 100}
    assert found.map_at_r > 99


@pytest.mark.parametrize(
    ("work", "message"),
    [
        (lambda: matrix_metrics(np.zeros((2, 2)), [0]), "as many labels"),
        (lambda: matrix_metrics(np.zeros((0, 0)), []), "no items"),
        (lambda: matrix_metrics(np.array([[0, np.nan], [1, 0]]), [0, 0]), "items 0 and 1 is not finite"),
        (lambda: embedding_metrics(np.zeros(3), [0, 0, 0]), r"\[items, dim\]"),
        (lambda: embedding_metrics(np.array([[1.0], [np.inf]]), [0, 0]), "embedding 1 is not finite"),
        (lambda: instance_metrics(matrix_ranks(np.zeros((2, 2)), [0, 1])), "no queries"),
    ],
)
def test_what_cannot_be_measured(work, message):
    with pytest.raises(EvaluationError, match=message):
        work()
