"""The confidence study: fits, galleries of several sizes, queries without an answer, and the report."""

import numpy as np
import pytest
from absent_queries import EACH, absent_queries, farthest
from confidence import Cell, cells_of, groups_of, judged
from confidence_fit import Hits, confidences, fit_calibration
from confidence_text import plots_of, text_of
from strangers import COLLECTIONS, Gallery, bank_texts, some_captions

from wordreel.index.exact import ExactIndex
from wordreel.types import Calibration, QueryEmbedding


def drawn(calibration, count=4_000, seed=0):
    """Top hits that are right exactly as often as a calibration says."""
    rng = np.random.default_rng(seed)
    hits = Hits(rng.normal(0, 1.5, (count, 4)), np.zeros(count, bool))
    return Hits(hits.features, rng.uniform(size=count) < confidences(hits, calibration))


def test_a_fit_finds_the_calibration_that_drew_the_hits():
    true = Calibration(1.2, 0.7, 0.3, 0.4, 2.0)
    found = fit_calibration([drawn(true), drawn(true, seed=1)], crowd_at_most=np.inf)
    for name in ("height", "crowd", "growth", "likeness", "toll"):
        assert getattr(found, name) == pytest.approx(getattr(true, name), abs=0.15), name


def test_a_fit_is_the_largest_likelihood_that_a_slow_search_finds():
    hits = drawn(Calibration(1.0, 0.5, 0.5, 0.5, 1.0), 500)
    found = fit_calibration([hits], crowd_at_most=np.inf)

    def likelihood(numbers):
        chance = confidences(hits, Calibration(*numbers))
        return np.log(np.where(hits.right, chance, 1 - chance)).mean()

    here = np.array([found.height, found.crowd, found.growth, found.likeness, found.toll])
    for place in range(5):
        for step in (-0.1, 0.1):
            other = here.copy()
            other[place] += step
            assert likelihood(other) < likelihood(here) + 1e-4


def test_the_weight_of_a_crowd_is_bounded():
    true = Calibration(1.2, 0.7, 0.3, 0.4, 2.0)
    found = fit_calibration([drawn(true)])
    assert found.crowd == 0.4
    assert fit_calibration([drawn(Calibration(1.2, 0.2, 0.3, 0.4, 2.0))]).crowd < 0.4
    sure = confidences(drawn(true), found)
    assert sure.mean() == pytest.approx(drawn(true).right.mean(), abs=0.01)


def test_what_would_make_a_better_score_less_sure_counts_nothing():
    hits = drawn(Calibration(1.0, 0.5, 0.5, 0.0, 1.0))
    against = Hits(hits.features * [1, -1, 1, 1], hits.right)
    found = fit_calibration([against])
    assert found.crowd == 0
    assert found.height == pytest.approx(1.0, abs=0.15)


def test_queries_without_an_answer_are_unlike_the_collection():
    assert len(set(absent_queries())) == EACH
    rng = np.random.default_rng(0)
    theirs, own = rng.normal(size=(30, 8)), rng.normal(size=(20, 8))
    nearest = [max(float(a @ b) for b in own) for a in theirs]
    expected = sorted(sorted(range(30), key=lambda row: nearest[row])[:7])
    assert farthest(theirs, own, 7).tolist() == expected


class Words:
    """Encodes a text as the unit vector of its length; anything else as noise."""

    def encode(self, texts):
        rng = np.random.default_rng(len(texts))
        vectors = [np.eye(12)[int(t)] if t.isdecimal() else 0.3 * rng.normal(size=12) for t in texts]
        return [QueryEmbedding(v[None].astype(np.float32), np.ones(1, np.float32)) for v in vectors]


def gallery(seed=0):
    """Twelve videos of two items each."""
    rng = np.random.default_rng(seed)
    items = np.repeat(np.eye(12), 2, axis=0) + rng.normal(0, 0.15, (24, 12))
    index = ExactIndex(items[:, None].astype(np.float32), np.ones((24, 1), bool))
    texts = tuple(str(number) for number in range(12))
    return Gallery(COLLECTIONS[0], Words(), index, np.arange(0, 24, 2), texts, np.arange(12))


def test_a_gallery_whole_and_in_part(monkeypatch):
    monkeypatch.setattr("confidence.SIZES", (2, 0.5, 4))
    cells = cells_of(gallery(), [f"bank {number}" for number in range(200)], ["far"] * 9)
    assert [cell.videos for cell in cells] == [12, 6, 4]
    assert [len(cell.answered.right) for cell in cells] == [12, 6, 4]
    assert cells[0].removed is None
    assert [len(cell.removed.right) for cell in cells[1:]] == [6, 8]
    assert not any(hits.right.any() for cell in cells for hits in cell.absent)
    assert cells[0].answered.right.mean() > 0.9
    weights = [hits.weight for hits in groups_of(cells[1:2])]
    assert weights == [1.0, *[pytest.approx(0.25 / 3)] * 3]
    calibration = fit_calibration(groups_of(cells))
    row = judged(cells[0], calibration)
    assert row["mean_confidence"] > 0.5 > row["false_alarms"]["0.5"]
    assert sum(len(part) == 2 for part in row["reliability"]) == 10


def test_the_report_names_strangers_and_constants():
    hits = drawn(Calibration(1.0, 0.5, 0.5, 0.5, 1.0), 300)
    cell = Cell(40, hits, hits.features[:, 0], hits, hits, None)
    row = {
        "model": "default",
        "collection": "msvd-test",
        **judged(cell, Calibration(1, 0, 0, 0, 1)),
    }
    text = text_of({"rows": [row], "constants": {"default": {"height": 1.25, "toll": 2.0}}})
    assert "| default | MSVD test | 40 | 300 |" in text
    assert "| default | 1.25 | 2 |" in text
    assert "confidence" in plots_of([row])["reliability_default"]


def test_banks_and_captions_are_evenly_spaced():
    told = {"msvd": {"train": {"a": ["one", "two"], "b": ["one"]}}, "msrvtt": {"all": {"c": ["three"]}}}
    banks = bank_texts(told)
    assert banks["msvd"] == ["one", "two"]
    assert set(banks) == {"everyday", "msvd"}
    assert some_captions({"a": list("abcde"), "b": ["x"]}) == {"a": ["a", "c", "e"], "b": ["x"]}
