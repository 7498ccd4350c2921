"""A search that looks only at the best items finds what a look at every item finds."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from tests.search.helpers import find

from wordreel.embed.embedding_cache import Gallery
from wordreel.index import exact
from wordreel.index.base import Correction
from wordreel.search import explain, sample, text_search
from wordreel.search.filters import Filters
from wordreel.search.query import Query
from wordreel.search.scoring import PLAIN, FittedNorm, Scoring
from wordreel.search.words.lexical import lexical_matches
from wordreel.types import QueryEmbedding

DIM = 384  # so long that the order of a sum's terms shows in its last bits


@pytest.fixture(params=["all at once", "by the index"])
def searcher(searcher, model, monkeypatch, request):
    """The searcher of the small library, over vectors that nothing rounds by chance."""
    if request.param == "by the index":  # as in a large library
        monkeypatch.setattr(text_search, "ALL_AT_ONCE", 0)
    rng = np.random.default_rng(0)

    def queries(texts):
        seeds = [np.random.default_rng(list(text.encode())) for text in texts]
        return [
            QueryEmbedding(
                seed.normal(size=(2, DIM)).astype(np.float32),
                seed.random(2).astype(np.float32),
                text,
            )
            for seed, text in zip(seeds, texts, strict=True)
        ]

    monkeypatch.setattr(model, "encode", queries, raising=False)
    available = searcher.snapshot.gallery.available
    vectors = rng.normal(size=(len(searcher), 2, DIM)).astype(np.float32) / DIM**0.5 * available[..., None]
    gallery = Gallery(searcher.snapshot.gallery.ids, vectors, available)
    return replace(searcher, snapshot=replace(searcher.snapshot, gallery=gallery))


def norms(searcher):
    rng = np.random.default_rng(1)
    bias = rng.normal(size=len(searcher)).astype(np.float32) / 10
    return [
        PLAIN,
        FittedNorm("folded", Correction(bias)),
        FittedNorm("gated", Correction(bias, rng.random(len(searcher)) < 0.5)),
        FittedNorm("rescored", rescore=lambda scores, rows: scores.astype(np.float64) - bias[rows]),
    ]


def sure(scores, rows, rivals):
    return np.asarray(1 / (1 + np.exp(rivals.scores.max() - 2 * scores)), np.float32)


def everything(searcher, text, limit, moments, norm, least):
    """Every item scored, for its confidence and for the ranking, whatever the rank."""
    query, found = searcher.model.encode([text])[0], lexical_matches(searcher.snapshot, text)
    bonus = dict(zip(found.items.tolist(), found.values.tolist(), strict=True))
    vectors, weights = query.vectors[None], query.weights[None]
    snapshot, count = searcher.snapshot, len(searcher)
    extra = np.array([bonus.get(row, 0.0) for row in range(count)], np.float32)
    plain = snapshot.index.scores(vectors, weights, slice(None))[0] + extra
    best = plain[snapshot.best_rows(plain[None])[0]].max()
    confident = 1 / (1 + np.exp(best - 2 * plain))
    opened = snapshot.index.search(vectors, weights, 1, None, norm.correction).corrected[0]
    scores = plain - norm.correction.bias if opened else plain
    if norm.rescore is not None:
        scores = norm.rescore(plain[None], np.arange(count))[0]
    own = np.array(scores)
    literal = [row for row in range(count) if holds(searcher, row, text)]
    guesses = [row for row in range(count) if row not in literal and confident[row] < text_search.SURE]
    scores = np.array(own)
    if literal and guesses:
        scores[literal] = np.maximum(own[literal], own[guesses].max())
    chosen, seen = [], set()
    for row in sorted(range(count), key=lambda row: (-scores[row], row not in literal, -own[row], row)):
        item = snapshot.items[row]
        if confident[row] < least or (moments and item.whole and len(snapshot.rows(item.content)) > 1):
            continue
        if moments or item.content not in seen:
            seen.add(item.content)
            chosen.append((item.content, pytest.approx(scores[row], abs=1e-6), row))
    chosen, lowest = chosen[:limit], 1.0
    for place, (content, score, row) in enumerate(chosen):
        below = [confident[other] for _, _, other in chosen[place:] if scores[row] > own[row]]
        lowest = min(lowest, float(max([confident[row], *below])))  # no hit is surer than the one above it
        chosen[place] = (content, score, pytest.approx(lowest))
    return chosen, norm.label if opened or norm.rescore is not None else "none"


def holds(searcher, row, text):
    """Whether all words of a text are said in a moment, in order."""
    item = searcher.snapshot.items[row]
    if item.whole and len(searcher.snapshot.rows(item.content)) > 1:
        return False
    lines = searcher.store.words(item.content)
    inside = [line for line in lines if item.whole or (line.start < item.end and line.end > item.start)]
    return any(f" {text} " in f" {line.text} " for line in inside)


@pytest.mark.parametrize("block", [exact.BLOCK, 7])
@pytest.mark.parametrize("candidates", [text_search.CANDIDATES, 2])
def test_a_search_finds_what_a_look_at_every_item_finds(searcher, block, candidates, monkeypatch):
    monkeypatch.setattr(exact, "BLOCK", block)
    labels = set()
    for norm in norms(searcher):
        if norm.rescore is None:  # which sees the first candidates only
            monkeypatch.setattr(text_search, "CANDIDATES", candidates)
        for text in ("red", "blue dogs 2", "dogs", "nothing named here"):
            for limit, moments, least in (
                (1, False, 0.0),
                (3, True, 0.0),
                (100, False, 0.4),
                (5, True, 0.45),
            ):
                expected, label = everything(searcher, text, limit, moments, norm, least)
                hits = find(
                    searcher, text, limit, moments=moments, norm=norm, confidence=sure, min_confidence=least
                )
                assert [(hit.content, hit.score, hit.confidence) for hit in hits] == expected
                assert {hit.norm for hit in hits} <= {label}
                labels.add(label)
        monkeypatch.setattr(text_search, "CANDIDATES", 1_000)
    assert labels == {"none", "folded", "gated", "rescored"}


def test_a_search_without_a_bank_scores_all_items_once(searcher, monkeypatch):
    passes = []
    plain = exact.ExactIndex._plain

    def counted(self, flat, weights, rows):
        passes.append(rows)
        return plain(self, flat, weights, rows)

    monkeypatch.setattr(exact.ExactIndex, "_plain", counted)
    for norm in norms(searcher):
        passes.clear()
        find(searcher, "nothing named here", 6, norm=norm)
        gated = norm.correction is not None and norm.correction.active is not None
        assert 1 <= sum(isinstance(rows, slice) for rows in passes) <= (2 if gated else 1)


@pytest.mark.parametrize("filters", [Filters(), Filters(kind="video")])
def test_the_best_videos_are_those_of_a_search_of_their_own(searcher, filters, monkeypatch):
    monkeypatch.setattr(sample, "ROWS", 4)  # so that the sample is not the whole library
    monkeypatch.setattr("wordreel.hubness.confidence.CROWD", 2)
    searches = []
    real = text_search.TextSearch.search
    monkeypatch.setattr(
        text_search.TextSearch, "search", lambda *given: searches.append(given) or real(*given)
    )
    reused = set()
    for norm in norms(searcher):
        for text, limit in (("red", 2), ("nothing named here", 2), ("dogs", 3)):
            search = text_search.TextSearch(searcher, searcher.encode_texts([text])[0], Scoring(norm))
            alone = replace(search, _plain_best={}).rivals
            search.rank(searcher.snapshot.passing(filters).allowed, Query(text, limit=limit, filters=filters))
            searches.clear()
            np.testing.assert_array_equal(search.rivals.best, alone.best)
            reused.add(not searches)
    assert reused == ({True, False} if filters == Filters() else {False})


def check_same_hits(some, others):
    """The same list; numbers may differ in the last bits between two layouts in memory."""

    def words(hit):
        return hit.rank, hit.path, hit.start, hit.end, [(why.expert, why.what, why.at) for why in hit.why]

    def numbers(hit):
        return [hit.score, hit.confidence or 0.0, *(why.share for why in hit.why)]

    assert [words(hit) for hit in some] == [words(hit) for hit in others]
    for one, two in zip(some, others, strict=True):
        assert numbers(one) == pytest.approx(numbers(two), abs=1e-5)


def test_scores_that_differ_by_rounding_are_ranked_by_their_rows(searcher, monkeypatch):
    """Whatever the last bits of a product are, which differ from one processor to another."""
    rng = np.random.default_rng(7)

    def equal(self, rows):
        return np.full(len(rows), 0.25, np.float32) + rng.choice([0, 1e-7, -1e-7], len(rows)).astype(
            np.float32
        )

    monkeypatch.setattr(text_search.TextSearch, "plain", equal)
    rows = np.arange(len(searcher))
    allowed = searcher.snapshot.live

    def joined(self, found, allowed, bias, wanted, moments=False):
        return rows, self.plain(rows)

    monkeypatch.setattr(text_search.TextSearch, "_joined", joined)
    search = text_search.TextSearch(searcher, searcher.encode_texts(["zebra"])[0], Scoring())
    query = Query("zebra", limit=5, moments=True)
    lists = [search.rank(allowed, query)[0] for _ in range(10)]
    assert len({tuple(one.row for one in ranked) for ranked in lists}) == 1
    for ranked in lists:
        assert [one.score for one in ranked] == sorted((one.score for one in ranked), reverse=True)


def test_removed_videos_leave_no_trace_in_a_search(store, model, films):
    """Rows of removed clips stay among the embeddings; searches equal those over embeddings without them."""
    from wordreel.embed.embed_library import embed_library, embedding_cache
    from wordreel.search.searcher import Searcher

    embed_library(store, model)
    store.remove(films[:2])
    with_dead = Searcher.open(store, model)
    assert len(with_dead.snapshot.columns.dead) > 0
    embedding_cache(store, model).compact()
    clean = Searcher.open(store, model)
    assert len(clean.snapshot.columns.dead) == 0
    assert len(with_dead) == len(clean) == len(with_dead.snapshot.live.nonzero()[0])
    for text in ("red", "blue dogs 2", "dogs"):
        for fields in ({}, {"moments": True}, {"then": "green"}, {"min_confidence": 0.45}):
            found = [find(one, text, 20, confidence=sure, **fields) for one in (with_dead, clean)]
            check_same_hits(*found)
        np.testing.assert_allclose(with_dead.scores([text]), clean.scores([text]), atol=1e-6)
        content = clean.snapshot.contents()[0]
        lines = [one.where(content, Query(text)) for one in (with_dead, clean)]
        assert lines[0].scores == pytest.approx(lines[1].scores, abs=1e-4)  # four decimals are given
        assert replace(lines[0], scores=(), moments=()) == replace(lines[1], scores=(), moments=())
    assert with_dead.snapshot.contents() == clean.snapshot.contents()
    for one in (with_dead, clean):
        assert one.search(Query(like=films[3])).total == clean.snapshot.video_count()
    check_same_hits(*(one.search(Query(like=films[3])) for one in (with_dead, clean)))


def test_a_video_removed_since_the_snapshot_is_no_hit(searcher, films):
    before = find(searcher, "red", 20)
    searcher.store.remove([before[0].path])
    after = find(searcher, "red", 20)
    assert [hit.content for hit in after] == [hit.content for hit in before[1:]]
    assert [hit.rank for hit in after] == list(range(1, len(after) + 1))


def test_the_sample_of_a_small_library_is_all_of_it(searcher):
    drawn = searcher.snapshot.sample
    assert sorted(drawn.rows.tolist()) == list(range(len(searcher)))
    assert drawn.videos == searcher.snapshot.video_count() == len(drawn.starts)


@pytest.mark.parametrize("lacking", [None, 0, 1])
def test_the_sample_of_a_larger_library_is_fixed_and_holds_whole_videos(searcher, lacking, monkeypatch):
    monkeypatch.setattr(sample, "ROWS", len(searcher) // 2)
    if lacking is not None:  # an expert that no item has
        gallery = searcher.snapshot.gallery
        vectors, available = gallery.vectors.copy(), gallery.available.copy()
        vectors[:, lacking], available[:, lacking] = 0, False
        snapshot = replace(searcher.snapshot, gallery=Gallery(gallery.ids, vectors, available))
        searcher = replace(searcher, snapshot=snapshot)
    drawn, again = sample.draw_sample(searcher.snapshot), sample.draw_sample(searcher.snapshot)
    np.testing.assert_array_equal(drawn.rows, again.rows)
    assert 0 < len(drawn.rows) <= len(searcher) // 2
    assert drawn.videos == searcher.snapshot.video_count() > len(drawn.starts)
    assert lacking not in drawn.experts.tolist()
    bounds = [*drawn.starts.tolist(), len(drawn.rows)]
    for start, end in itertools.pairwise(bounds):
        rows = drawn.rows[start:end]
        content = searcher.snapshot.items[int(rows[0])].content
        np.testing.assert_array_equal(rows, searcher.snapshot.rows(content))
    query = searcher.model.encode(["red"])[0]
    scores = drawn.scores(query.vectors[None], query.weights[None])[0]
    every = searcher.snapshot.index.scores(query.vectors[None], query.weights[None], slice(None))[0]
    np.testing.assert_allclose(scores, every[drawn.rows], atol=1e-6)
    best = drawn.rows[drawn.best(scores)]
    assert set(best.tolist()) <= set(searcher.snapshot.best_rows(every[None])[0].tolist())


def test_a_search_from_all_similarities_is_that_of_the_index(searcher, monkeypatch):
    for norm, text, moments in itertools.product(norms(searcher), ("red dogs", "nothing named here"), (0, 1)):
        query, found = Query(text, limit=6, moments=bool(moments)), []
        for most in (len(searcher), 0):
            monkeypatch.setattr(text_search, "ALL_AT_ONCE", most)
            found.append(searcher.search(query, Scoring(norm, sure)).hits)
        together, by_index = found
        assert len(together) == 6
        assert [replace(hit, score=0, confidence=0, why=()) for hit in together] == [
            replace(hit, score=0, confidence=0, why=()) for hit in by_index
        ]
        for name in ("score", "confidence"):
            values = [[getattr(hit, name) for hit in hits] for hits in found]
            np.testing.assert_allclose(values[0], values[1], atol=1e-6)


@pytest.mark.parametrize("number", range(3))
def test_the_moments_of_a_page_are_each_videos_best_clip(searcher, number):
    scoring = Scoring(norms(searcher)[number])
    (text,) = searcher.encode_texts(["a red dog"])
    search, snapshot = text_search.TextSearch(searcher, text, scoring), searcher.snapshot
    items = list(snapshot.items)
    rows = list(range(len(items)))
    bias = scoring.norm.correction.bias if scoring.norm.correction else np.zeros(len(rows))
    expected = []
    for row in rows:
        item = snapshot.items[row]
        own = [
            at for at in rows if snapshot.items[at].content == item.content and not snapshot.items[at].whole
        ]
        if item.whole and own:
            row = max(own, key=lambda at: search.plain(np.array([at]))[0] - bias[at])
        expected.append(snapshot.items[row])
    assert search.moments(rows) == expected
    assert {item.whole for item in expected} == {True, False}, "the picture has no clips"


def test_what_hits_are_explained_with_is_read_once(searcher, monkeypatch):
    first = find(searcher, "red and blue", limit=5)
    monkeypatch.setattr(explain, "tracks_of_all", None)
    assert find(searcher, "red and blue", limit=5) == first
    assert all(hit.why for hit in first)
