"""The timeline of a video against the confidences of a search."""

import numpy as np
import pytest
from tests.search.helpers import find

from wordreel.search.query import Query
from wordreel.search.scoring import FittedNorm, Scoring
from wordreel.search.words.where import match_timeline


def sure(scores, rows, rivals):
    """Depends on the item as well as on its score, so that it is not in the order of the ranking."""
    return np.asarray(1 / (1 + np.exp(-3 * scores)) * (0.4 + 0.6 * ((rows * 7) % 5) / 5), np.float32)


@pytest.fixture
def long_film(searcher):
    """A video of several clips."""
    snapshot = searcher.snapshot
    return max(snapshot.contents(), key=lambda content: len(snapshot.clip_rows(content)))


def test_the_strip_is_made_of_confidences_that_the_order_never_contradicts(searcher, long_film):
    snapshot = searcher.snapshot
    timeline = match_timeline(searcher, long_film, "red", Scoring(confidence=sure))
    assert timeline.calibrated
    rows = snapshot.clip_rows(long_film)
    scores = next(searcher.item_scores(["red"], [FittedNorm("none")]))[0]
    ranked = sorted(rows.tolist(), key=lambda row: -scores[row])
    every = snapshot.rows(long_film)
    known = dict(zip(every.tolist(), sure(scores[every], every, None).tolist(), strict=True))
    expected, lowest = {}, max(known.values())
    for number, row in enumerate(ranked):
        lowest = lowest if number == 0 else min(lowest, known[row])
        expected[row] = lowest
    for number, value in enumerate(timeline.scores):
        second = min((number + 0.5) * timeline.step, timeline.duration - 1e-6)
        (row,) = [r for r in ranked if snapshot.items[r].start <= second < snapshot.items[r].end]
        assert value == pytest.approx(expected[row], abs=1e-4)
    best = [score for _, _, score in timeline.moments]
    assert best == sorted(best, reverse=True)
    assert [start for start, _, _ in timeline.moments] == [
        snapshot.items[r].start for r in ranked[: len(best)]
    ]


def test_the_best_moment_is_the_one_that_a_search_displays(searcher):
    for hit in find(searcher, "blue", 20, confidence=sure):
        timeline = match_timeline(searcher, hit.content, "blue", Scoring(confidence=sure))
        start, end, score = timeline.moments[0]
        assert (start, end) == (hit.start, hit.end)
        assert score >= round(hit.confidence, 4) - 1e-4


def test_without_a_bank_the_strip_stands_in_the_library(searcher, long_film):
    timeline = searcher.where(long_film, Query("red"))
    assert not timeline.calibrated
    assert 0 <= min(timeline.scores) <= max(timeline.scores) <= 1
