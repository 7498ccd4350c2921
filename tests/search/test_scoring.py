"""A folded correction ranks as the dense definition does, also through the whole query path."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from tests.search.helpers import find

from wordreel.banks.embedded_bank import EmbeddedBank
from wordreel.catalogue.banks import create_bank
from wordreel.hubness import METHODS, make_method, mixtures
from wordreel.hubness.scores import ranking_scores
from wordreel.index.base import Best, Rest
from wordreel.search.query_fields import SEARCHABLE
from wordreel.search.scoring import PLAIN
from wordreel.search.text_search import TextSearch
from wordreel.search.words import lexical

BANK = ["red", "red and green", "blue", "green things", "a red dog", "blue blue", "nothing at all"]
TEXTS = ["red", "green and blue", "blue dogs", "green", "red green blue"]

NONE = (np.zeros(0, np.int64), np.zeros(0, np.float32))  # no item has the words of a query


@pytest.fixture
def work(searcher, store):
    return EmbeddedBank.open(searcher, create_bank(store, "colours", BANK, "the test"))


def dense(work, method, text):
    """The method applied to the whole matrix of similarities, item by item."""
    searcher = work.searcher
    query, bank = searcher.model.encode([text])[0], work.current()
    gallery = searcher.snapshot.gallery
    rows = mixtures(query.vectors[None], query.weights[None], gallery.vectors, gallery.available).read(0, 1)
    fitted = method.fit(mixtures(bank.vectors, bank.weights, gallery.vectors, gallery.available))
    scores = ranking_scores(method.apply(rows, fitted))[0]
    best = {}
    for row, item in enumerate(searcher.snapshot.items):
        best[item.content] = max(best.get(item.content, -np.inf), float(scores[row]))
    return best


def test_searchable_methods_need_no_other_queries_and_can_score_candidates():
    needing = {name for name, kind in METHODS.items() if kind.transductive or name.startswith("dual-")}
    kinds = {name: METHODS[name] for name in METHODS if name not in needing}
    assert tuple(name for name, kind in kinds.items() if kind.foldable or name == "gc") == SEARCHABLE


@pytest.mark.parametrize("name", [name for name in SEARCHABLE if name not in ("none", "gc")])
@pytest.mark.parametrize("text", TEXTS)
def test_search_with_a_norm_equals_the_dense_definition(work, name, text, monkeypatch):
    monkeypatch.setattr(lexical, "item_bonus", lambda snapshot, rows: NONE)
    method = make_method(name)
    norm = work.norm(method)
    assert norm.correction is not None
    expected = dense(work, method, text)
    hits = find(work.searcher, text, limit=100, norm=norm)
    assert len(hits) == len(expected)
    scores = np.array([hit.score for hit in hits])
    assert (np.diff(scores) <= 0).all()
    # Equal up to one constant per query (the bias is centred) and, for CSLS, its factor of two.
    factor = 2 if name == "csls" else 1
    shift = scores - np.array([expected[hit.content] for hit in hits]) / factor
    np.testing.assert_allclose(shift, shift[0], atol=2e-5)
    whole = work.searcher.scores([text], norm)[0]
    np.testing.assert_allclose(np.sort(whole)[::-1], scores, atol=2e-5)


@pytest.mark.parametrize("text", TEXTS)
def test_globally_corrected_rescores_candidates_like_the_dense_definition(work, text, monkeypatch):
    monkeypatch.setattr(lexical, "item_bonus", lambda snapshot, rows: NONE)
    expected = dense(work, make_method("gc"), text)
    hits = find(work.searcher, text, limit=100, norm=work.norm(make_method("gc")))
    assert len(hits) == len(expected)
    dense_scores = [expected[hit.content] for hit in hits]
    # Ties within a rank are broken by similarity in both; the places in a row are steps of 1/items.
    assert all(a >= b - 1e-9 for a, b in pairwise(dense_scores))
    norm = work.norm(make_method("gc"))
    whole = work.searcher.scores([text], norm)[0]
    kept = work.searcher.scores([text], replace(norm, rescore=norm.rescore.cached()))[0]
    np.testing.assert_array_equal(kept, whole)
    np.testing.assert_allclose(sorted(whole, reverse=True), [hit.score for hit in hits], atol=1e-6)


def test_the_bonus_of_words_comes_on_top_of_a_corrected_score(work):
    norm = work.norm(make_method("is"))
    for text in ["blue dogs 2", "red 1"]:
        hits = find(work.searcher, text, limit=100, norm=norm)
        whole = work.searcher.scores([text], norm)[0]
        np.testing.assert_allclose([hit.score for hit in hits], np.sort(whole)[::-1], atol=2e-5)


def test_a_least_confidence_leaves_items_out_before_ranking(work):
    def sure(scores, rows, rivals):
        return np.clip(scores, 0, 1)

    every = find(work.searcher, "green", limit=100, confidence=sure)
    assert all(hit.confidence == pytest.approx(np.clip(hit.score, 0, 1)) for hit in every)
    cut = every[1].confidence
    some = find(work.searcher, "green", limit=100, confidence=sure, min_confidence=cut)
    assert [hit.path for hit in some] == [hit.path for hit in every if hit.confidence >= cut]
    assert len(some) < len(every)


def test_order_and_confidence_never_contradict(work):
    def sure(scores, rows, rivals):
        return np.array([0.1 + 0.7 * (row % 2) for row in rows], np.float32)

    for name in ("none", "csls", "gc"):
        hits = find(work.searcher, "green", limit=100, norm=work.norm(make_method(name)), confidence=sure)
        found = [hit.confidence for hit in hits]
        assert len(set(found)) <= 2
        assert all(above >= below for above, below in pairwise(found))
        page = find(
            work.searcher, "green", limit=2, offset=1, norm=work.norm(make_method(name)), confidence=sure
        )
        assert [hit.confidence for hit in page] == found[1:3]


def test_the_best_videos_are_those_of_all_scores(work, monkeypatch):
    """A sample that is not the whole library leaves the crowd at the top to the index."""
    seen = []

    def sure(scores, rows, rivals):
        seen.append(rivals.best)
        return np.zeros(len(rows), np.float32)

    whole = np.sort(work.searcher.scores(["blue dogs 2"])[0])[::-1][:10]
    find(work.searcher, "blue dogs 2", confidence=sure)
    monkeypatch.setattr("wordreel.search.sample.ROWS", 4)
    small = replace(work.searcher, snapshot=replace(work.searcher.snapshot))
    find(small, "blue dogs 2", confidence=sure)
    assert len(small.snapshot.sample.starts) < small.snapshot.sample.videos
    for best in seen:
        np.testing.assert_allclose(best, whole, atol=1e-6)


def test_a_short_list_is_the_head_of_the_long_one(work):
    for name in ("dis", "is", "gc"):
        norm = work.norm(make_method(name))
        every = find(work.searcher, "green and blue", limit=100, norm=norm)
        head = find(work.searcher, "green and blue", limit=2, norm=norm)
        assert [hit.path for hit in head] == [hit.path for hit in every[:2]]


@pytest.mark.parametrize("name", ["none", "is", "dis"])
@pytest.mark.parametrize("moments", [False, True])
def test_items_that_are_not_scored_could_not_have_been_hits(work, name, moments, monkeypatch):
    """Random bonuses on all items, some of which lift an item from the end of the list to its head."""
    rng, rows = np.random.default_rng(0), len(work.searcher.snapshot.columns)
    norm = PLAIN if name == "none" else work.norm(make_method(name))
    scored = []
    real = TextSearch.plain

    def plain(self, some):
        scored.append(len(some))
        return real(self, some)

    monkeypatch.setattr(TextSearch, "plain", plain)
    for _ in range(10):
        values = (rng.random(rows) ** 4).astype(np.float32)
        monkeypatch.setattr(lexical, "item_bonus", lambda snapshot, terms: (np.arange(rows), values))  # noqa: B023
        monkeypatch.setattr(
            TextSearch, "moments", lambda self, rows: [self.searcher.snapshot.items[r] for r in rows]
        )
        scored.clear()
        some = find(work.searcher, "green and blue", limit=1, norm=norm, moments=moments)
        few = sum(scored)
        with monkeypatch.context() as all_of_them:
            all_of_them.setattr(Best, "rest", lambda self, query: Rest(np.arange(rows), np.inf))
            scored.clear()
            every = find(work.searcher, "green and blue", limit=1, norm=norm, moments=moments)
        assert few < sum(scored)
        assert [(hit.path, hit.start) for hit in some] == [(hit.path, hit.start) for hit in every]
        assert [hit.score for hit in some] == [hit.score for hit in every]


def test_words_are_looked_up_again_after_a_write(work):
    snapshot = work.searcher.snapshot
    first = snapshot.term_matches(["dogs"])["dogs"]
    assert len(first.items)
    assert snapshot.term_matches(["cats", "dogs"])["dogs"] is first
    content = snapshot.columns.content(int(snapshot.video[first.items[0]]))
    snapshot.store.catalogue.run("DELETE FROM words WHERE content = ?", content)
    assert snapshot.term_matches(["dogs"])["dogs"].videos == first.videos - 1


def test_of_many_terms_each_counts_once(work):
    """More terms than a machine word has bits."""
    text = " ".join(["dogs", *(f"word{number}" for number in range(80)), "number"])
    found = lexical.lexical_matches(work.searcher.snapshot, text)
    counts = {term: matches.videos for term, matches in found.terms.items()}
    both = lexical.bonus(counts, ["dogs", "number"], work.searcher.snapshot.video_count())
    assert found.values.max() == pytest.approx(both)
