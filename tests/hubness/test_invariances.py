"""What must hold for any similarities."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tests.hubness.hubby import hubby

from wordreel.errors import HubnessError
from wordreel.hubness import Direction, GatedScores, make_method, query_rows, ranking_scores
from wordreel.hubness.measures import k_occurrence, skewness

values = st.floats(-1, 1, width=32)


def matrices(rows, items):
    return hnp.arrays(np.float32, (rows, items), elements=values)


pairs = st.tuples(st.integers(1, 6), st.integers(1, 6), st.integers(1, 6)).flatmap(
    lambda n: st.tuples(matrices(n[0], n[2]), matrices(n[1], n[2]))
)


@settings(max_examples=200, deadline=None)
@given(pairs)
def test_rows_outside_the_activation_set_are_unchanged(pair):
    bank, rows = pair
    method = make_method("dis")
    found = method.apply(rows, method.fit(bank))
    closed = ~found.activated
    assert np.array_equal(found.scores[closed].view(np.uint32), rows[closed].view(np.uint32))


@settings(max_examples=200, deadline=None)
@given(pairs, st.integers(1, 5))
def test_a_larger_k_activates_at_least_as_much(pair, k):
    bank, _ = pair
    small, large = (make_method("dis", k=n).fit(bank).activation for n in (k, k + 1))
    assert (large >= small).all()
    assert make_method("dis", k=bank.shape[1]).fit(bank).activation.all()


@settings(max_examples=200, deadline=None)
@given(pairs)
def test_inverted_softmax_tends_to_centring_and_to_the_maximum(pair):
    bank, _ = pair
    assert np.allclose(
        make_method("is", beta=1e-6).fit(bank).offset, bank.mean(axis=0, dtype=np.float64), atol=1e-5
    )
    assert np.allclose(make_method("is", beta=1e6).fit(bank).offset, bank.max(axis=0), atol=1e-4)


@settings(max_examples=200, deadline=None)
@given(pairs, st.floats(-1e4, 1e4))
def test_a_shift_of_all_similarities_changes_no_score(pair, shift):
    bank, rows = (a.astype(np.float64) for a in pair)
    method = make_method("is", beta=2.0)
    moved = method.apply(rows + shift, method.fit(bank + shift))
    assert np.allclose(moved, method.apply(rows, method.fit(bank)), atol=1e-7)


@settings(max_examples=200, deadline=None)
@given(matrices(5, 4))
def test_with_the_test_queries_as_bank_it_is_a_softmax_over_columns(rows):
    method = make_method("is", beta=20.0)
    found = method.apply(rows.astype(np.float64), method.fit(rows.astype(np.float64)))
    e = np.exp(20.0 * rows.astype(np.float64))
    softmax = e / e.sum(axis=0)
    assert np.allclose(np.exp(20.0 * found) / len(rows), softmax, rtol=1e-9)


def test_the_query_term_of_csls_changes_no_ranking():
    rng = np.random.default_rng(0)
    bank, rows = rng.normal(size=(40, 12)), rng.normal(size=(30, 12))
    method = make_method("csls", k=5)
    state = method.fit(bank)
    full = method.apply(rows, state)
    assert np.array_equal(np.argsort(full, axis=1), np.argsort(rows - state.offset, axis=1))


@pytest.mark.parametrize("name", ["is", "dis", "csls", "nnn", "cent", "gc", "sinkhorn", "test-is", "dsl"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.usefixtures("logits_on_purpose")
def test_huge_logits_stay_finite(name, dtype):
    rng = np.random.default_rng(1)
    bank, rows = (rng.choice([-1e4, 1e4, 25.0, -3.0], (7, 5)).astype(dtype) for _ in range(2))
    method = make_method(name)
    state = method.fit(bank)
    out = ranking_scores(method.apply(rows, state))
    assert np.isfinite(out).all()
    assert out.dtype == (np.float64 if dtype == np.float64 or method.double else np.float32)


def test_gated_scores_refuse_to_be_transposed():
    method = make_method("dis")
    bank = np.eye(3, dtype=np.float32)
    found = method.apply(bank, method.fit(bank))
    assert isinstance(found, GatedScores)
    assert found.shape == (3, 3)
    for attempt in (
        lambda: found.T,
        lambda: found.transpose(),
        lambda: np.asarray(found),
        lambda: np.transpose(found),
    ):
        with pytest.raises(HubnessError, match="transpose"):
            attempt()


def test_video_to_text_has_videos_as_queries():
    rng = np.random.default_rng(2)
    captions_by_videos = rng.uniform(size=(8, 3))
    train_captions_by_test = rng.uniform(size=(8, 5))  # test captions against training videos
    rows = query_rows(captions_by_videos, Direction.VIDEO_TO_TEXT)
    bank = query_rows(train_captions_by_test, Direction.VIDEO_TO_TEXT)
    method = make_method("dis")
    assert method.apply(rows, method.fit(bank)).shape == (3, 8)
    assert query_rows(captions_by_videos, Direction.TEXT_TO_VIDEO).shape == (8, 3)


def test_normalisation_spreads_the_retrievals_of_a_hubby_gallery():
    bank, rows, _ = hubby(seed=0)
    plain = skewness(k_occurrence(rows))
    for name in ("is", "csls", "nnn", "sinkhorn", "gc", "dis"):
        method = make_method(name)
        assert skewness(k_occurrence(method.apply(rows, method.fit(bank)))) < 0.8 * plain, name
