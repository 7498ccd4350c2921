import numpy as np
import pytest

from wordreel.index import exact
from wordreel.index.base import Correction
from wordreel.index.exact import ExactIndex, search_scores
from wordreel.models.similarity import mixture


def naive(queries, weights, videos, available, bias, k, allowed):
    """Score every pair by the definition in float64 and sort whole rows."""
    rows = []
    for q in range(len(queries)):
        scored = []
        for v in range(len(videos)):
            if not allowed[v]:
                continue
            used = [m for m in range(videos.shape[1]) if available[v, m]]
            bottom = sum(float(weights[q, m]) for m in used)
            top = sum(float(weights[q, m]) * float(queries[q, m] @ videos[v, m]) for m in used)
            scored.append((-(top / bottom if bottom > 0 else 0.0) + float(bias[v]), v))
        rows.append([v for _, v in sorted(scored)[:k]])
    return rows


def case(rng):
    """Small integers: exact in float32, and full of ties."""
    n, e, d = int(rng.integers(1, 120)), 3, 5
    videos = rng.integers(-2, 3, (n, e, d)).astype(np.float32)
    available = (rng.random((n, e)) < 0.7) & (rng.random(e) < 0.8)  # no item has some of the experts
    videos[~available] = 0
    queries = rng.integers(-2, 3, (4, e, d)).astype(np.float32)
    weights = rng.integers(0, 2, (4, e)).astype(np.float32)
    bias = rng.integers(-1, 2, n).astype(np.float32)
    return videos, available, queries, weights, bias


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("kind", ["plain", "corrected", "gated"])
def test_blocks_filters_and_corrections_equal_the_definition(seed, kind, monkeypatch):
    rng = np.random.default_rng(seed)
    monkeypatch.setattr(exact, "BLOCK", int(rng.integers(3, 40)))
    videos, available, queries, weights, bias = case(rng)
    n, k = len(videos), int(rng.integers(1, 12))
    allowed = rng.random(n) < 0.8
    active = rng.random(n) < 0.5
    correction = {
        "plain": None,
        "corrected": Correction(bias),
        "gated": Correction(bias, active),
    }[kind]
    found = ExactIndex(videos, available).search(queries, weights, k, allowed, correction)
    plain = naive(queries, weights, videos, available, np.zeros(n), n, allowed)
    fixed = naive(queries, weights, videos, available, bias, n, allowed)
    for q in range(len(queries)):
        opened = kind == "corrected" or (kind == "gated" and bool(plain[q]) and bool(active[plain[q][0]]))
        want = (fixed if opened else plain)[q][:k]
        got = found.rows[q]
        assert got[got >= 0].tolist() == want
        assert found.corrected[q] == opened
        assert np.isneginf(found.scores[q][len(want) :]).all()
        if kind == "corrected":
            assert found.plain is None
        else:
            assert found.plain.rows[q][found.plain.rows[q] >= 0].tolist() == plain[q][:k]


@pytest.mark.parametrize("seed", range(24))
def test_scores_of_all_items_are_searched_as_the_items_are(seed):
    rng = np.random.default_rng(seed)
    videos, available, queries, weights, bias = case(rng)
    n, k = len(videos), int(rng.integers(1, 150))
    videos[rng.random(n) < 0.1] = np.nan
    index = ExactIndex(videos, available)
    scores = index.scores(queries, weights, slice(None))
    for allowed in (None, rng.random(n) < 0.5, np.zeros(n, bool)):
        for correction in (None, Correction(bias), Correction(bias, rng.random(n) < 0.5)):
            found = search_scores(scores, k, allowed, correction)
            expected = index.search(queries, weights, k, allowed, correction)
            np.testing.assert_array_equal(found.rows, expected.rows)
            np.testing.assert_array_equal(found.scores, expected.scores)
            np.testing.assert_array_equal(found.corrected, expected.corrected)
            assert (found.plain is None) == (expected.plain is None)
            if found.plain is not None:
                np.testing.assert_array_equal(found.plain.rows, expected.plain.rows)
                np.testing.assert_array_equal(found.plain.scores, expected.plain.scores)


def test_a_correction_of_another_gallery_is_refused():
    index = ExactIndex(np.zeros((2, 1, 3), np.float32), np.ones((2, 1), bool))
    one = np.ones((1, 1, 3), np.float32), np.ones((1, 1), np.float32)
    with pytest.raises(ValueError, match="does not fit"):
        index.search(*one, 1, correction=Correction(np.zeros(3, np.float32)))
    with pytest.raises(ValueError, match="does not fit"):
        index.search(*one, 1, correction=Correction(np.zeros(2, np.float32), np.zeros(3, bool)))


def test_similarity_of_a_column_ignores_other_videos():
    rng = np.random.default_rng(0)
    q, v = rng.normal(size=(2, 3, 4)).astype(np.float32), rng.normal(size=(2, 3, 4)).astype(np.float32)
    w = rng.random((2, 3)).astype(np.float32)
    full = mixture(q, w, v, np.array([[True, True, True], [True, True, True]]))
    other = mixture(q, w, v, np.array([[False, True, False], [True, True, True]]))
    np.testing.assert_array_equal(full[:, 1], other[:, 1])
    assert not np.allclose(full[:, 0], other[:, 0])


def test_a_video_without_any_expert_scores_zero():
    one = np.ones((1, 2, 3), np.float32)
    assert mixture(one, np.ones((1, 2), np.float32), one, np.zeros((1, 2), bool)) == 0


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="do not fit"):
        ExactIndex(np.zeros((2, 1, 3), np.float32), np.ones((3, 1), bool))
