"""First this, later that: the fast pairing equals the slow one."""

import numpy as np
import pytest
from tests.search.helpers import find

from wordreel.errors import QueryError
from wordreel.index.base import Correction
from wordreel.search import then as module
from wordreel.search.filters import Filters
from wordreel.search.scoring import PLAIN, FittedNorm
from wordreel.search.then import best_pairs


def naive(searcher, scores, allowed):
    """Every pair of clips of every video, one by one."""
    best = {}
    for a, one in enumerate(searcher.snapshot.items):
        for b, two in enumerate(searcher.snapshot.items):
            if one.whole or two.whole or one.content != two.content or two.start < one.end - 1e-9:
                continue
            if not (allowed[0, a] and allowed[1, b]):
                continue
            total = scores[0, a] + scores[1, b]
            if one.content not in best or total > best[one.content][0]:
                best[one.content] = (total, a, b)
    return best


def test_pairs_equal_the_naive_ones(searcher):
    rng = np.random.default_rng(0)
    for trial in range(30):
        scores = rng.normal(size=(2, len(searcher)))
        allowed = rng.random((2, len(searcher))) < (1.0 if trial < 10 else 0.7)
        expected = naive(searcher, scores, allowed)
        found = {
            searcher.snapshot.items[p.first].content: (p.score, p.first, p.second)
            for p in best_pairs(searcher.snapshot, np.arange(len(searcher)), scores, allowed)
        }
        assert {c: (pytest.approx(s), a, b) for c, (s, a, b) in expected.items()} == found
    assert expected


def test_equal_scores_give_the_earliest_pair(searcher):
    scores = np.ones((2, len(searcher)))
    rows = np.arange(len(searcher))
    for pair in best_pairs(searcher.snapshot, rows, scores, np.ones((2, len(searcher)), bool)):
        content = searcher.snapshot.items[pair.first].content
        clips = sorted(
            (r for r in searcher.snapshot.rows(content) if not searcher.snapshot.items[r].whole),
            key=lambda r: searcher.snapshot.items[r].start,
        )
        assert (pair.first, pair.second) == (clips[0], clips[1])


@pytest.mark.parametrize("candidates", [1_000, 1])
@pytest.mark.parametrize("corrected", [False, True])
def test_ranking_equals_the_naive_one(searcher, corrected, candidates, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "CANDIDATES", candidates)  # so that the search has to go deeper
    bias = np.linspace(0, 1, len(searcher)).astype(np.float32)
    norm = FittedNorm("test", Correction(bias, None)) if corrected else PLAIN
    scores = np.concatenate([next(searcher.item_scores([t], [norm])) for t in ("red dogs", "blue")])
    expected = sorted(
        naive(searcher, scores, np.ones(scores.shape, bool)).items(), key=lambda kv: (-kv[1][0], kv[1][1])
    )
    found = find(searcher, "red dogs", 10, then="blue", norm=norm)
    assert [hit.content for hit in found] == [content for content, _ in expected]
    assert [hit.score for hit in found] == pytest.approx([value[0] for _, value in expected], abs=1e-5)
    for hit, (_, (_, a, b)) in zip(found, expected, strict=True):
        assert (hit.start, hit.end) == (searcher.snapshot.items[a].start, searcher.snapshot.items[a].end)
        assert hit.then == (searcher.snapshot.items[b].start, searcher.snapshot.items[b].end)
        assert hit.why
    assert find(searcher, "red dogs", 2, then="blue", norm=norm, offset=1) == found[1:3]
    some = find(searcher, "red", then="blue", filters=Filters(folder=tmp_path / "media" / "part1"))
    assert {"part1" in str(hit.path) for hit in some} == {True}


def test_confidences_are_those_of_the_less_sure(searcher):
    def sure(scores, rows, rivals):
        return np.linspace(0, 1, len(searcher)).astype(np.float32)[rows]

    hits = find(searcher, "red", then="blue", confidence=sure, min_confidence=0.3)
    assert hits
    assert all(hit.confidence >= 0.3 for hit in hits)


@pytest.mark.parametrize(
    ("first", "second", "limit"), [("", "a", 1), ("a", " ", 1), ("a", "b", 0), ("a" * 10_001, "b", 1)]
)
def test_what_cannot_be_asked(searcher, first, second, limit):
    with pytest.raises(QueryError):
        find(searcher, first, limit, then=second)
