import gc
import os
import weakref
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from tests.lines import lines_with
from tests.search.helpers import find

from wordreel.banks.choose_scoring import choose_scoring
from wordreel.embed.embed_library import embed_library
from wordreel.embed.embedding_cache import EmbeddingCache
from wordreel.errors import QueryError
from wordreel.search.filters import Filters
from wordreel.search.query import Query
from wordreel.search.searcher import Searcher
from wordreel.search.words import lexical


def naive(searcher, store, model, text):
    """Every item scored by the definition, one by one; a video is as good as its best item."""
    query = model.encode([text])[0]
    terms = {t: lines_with(store, [t], limit=10**6) for t in lexical.terms_of(text)}
    counts = {t: len({w.content for w in rows}) for t, rows in terms.items()}
    best = {}
    for clip in store.clips():
        tracks = {name: store.track(clip.content, name) for name in model.experts}
        tracks = {name: track for name, track in tracks.items() if hasattr(track, "values")}
        vectors, available = model.embed(tracks, [clip.clip])
        top = sum(query.weights[m] * query.vectors[m] @ vectors[0, m] for m in range(2) if available[0, m])
        bottom = sum(query.weights[m] for m in range(2) if available[0, m])
        score = float(top / bottom) if bottom else 0.0
        found = {
            t
            for t, rows in terms.items()
            if any(
                w.content == clip.content and (clip.whole or (w.start < clip.end and w.end > clip.start))
                for w in rows
            )
        }
        score += lexical.bonus(counts, found, len({c.content for c in store.clips()}))
        best[clip.content] = max(best.get(clip.content, -9.0), score)
    return best


@pytest.mark.parametrize("text", ["red", "green and blue", "blue dogs 2", "nothing named here"])
def test_ranking_equals_the_naive_one(searcher, store, model, text):
    expected = naive(searcher, store, model, text)
    hits = find(searcher, text, limit=100)
    assert [hit.rank for hit in hits] == list(range(1, len(expected) + 1))
    assert [hit.score for hit in hits] == pytest.approx(sorted(expected.values(), reverse=True), abs=1e-5)
    for hit in hits:
        assert hit.score == pytest.approx(expected[hit.content], abs=1e-5)
    scores = searcher.scores([text])[0]
    np.testing.assert_allclose(
        scores, [expected[content] for content in searcher.snapshot.contents()], atol=1e-5
    )


def test_a_short_list_is_the_head_of_the_long_one(searcher):
    every = find(searcher, "green", limit=100)
    assert [hit.path for hit in find(searcher, "green", limit=2)] == [hit.path for hit in every[:2]]


def test_a_hit_names_a_moment_inside_the_video(searcher, store):
    for hit in find(searcher, "red", limit=100):
        duration = store.info(hit.content).duration
        assert 0 <= hit.start <= hit.end <= duration + 1e-6
        if hit.kind == "image":
            assert (hit.start, hit.end) == (0, 0)
        elif len(store.clips(hit.content)) > 1:
            assert hit.end - hit.start < duration


def test_moments_lists_clips_of_any_video(searcher, store):
    moments = find(searcher, "red", limit=1000, moments=True)
    singles = sum(len(store.clips(video.content)) == 1 for video in store.videos())
    assert len(moments) == sum(not clip.whole for clip in store.clips()) + singles
    assert [hit.score for hit in moments] == sorted((hit.score for hit in moments), reverse=True)


def test_shares_add_up_to_the_score(searcher):
    for hit in find(searcher, "red dogs", limit=100):
        assert sum(reason.share for reason in hit.why) == pytest.approx(hit.score, abs=1e-4)


def test_words_that_were_said_are_quoted(searcher, store):
    said = next(row for video in store.videos() for row in store.words(video.content))
    term = lexical.terms_of(said.text)[0]
    quoted = [r for hit in find(searcher, term, limit=100) for r in hit.why if r.expert.endswith("words")]
    assert quoted
    assert any(term in reason.what.lower() for reason in quoted)


def test_filters_by_folder_and_time(searcher, store, tmp_path):
    inside = find(searcher, "red", limit=100, filters=Filters(folder=tmp_path / "media" / "part1"))
    assert inside
    assert all(Path(hit.path).parent.name == "part1" for hit in inside)
    assert find(searcher, "red", filters=Filters(folder=tmp_path / "media" / "part")) == []
    tomorrow = datetime.now() + timedelta(days=1)
    assert find(searcher, "red", filters=Filters(after=tomorrow)) == []
    assert len(find(searcher, "red", limit=100, filters=Filters(before=tomorrow))) == 7
    with pytest.raises(QueryError, match="swap"):
        Filters(after=tomorrow, before=datetime.now())


def test_a_filter_never_costs_results(searcher, tmp_path):
    """The only allowed video may rank last."""
    last = find(searcher, "red", limit=100)[-1]
    only = find(searcher, "red", limit=1, filters=Filters(folder=Path(last.path)))
    assert [hit.content for hit in only] == [last.content]


@pytest.mark.parametrize(("text", "limit"), [("  ", 10), ("x" * 20_000, 10), ("red", 0)])
def test_queries_that_cannot_be_answered(searcher, text, limit):
    with pytest.raises(QueryError):
        find(searcher, text, limit)


def test_strange_queries_are_answered(searcher):
    for text in ('"', "NEAR(", "a OR b", "💡", "\ud800", "sélect * from", "-" * 50):
        assert len(find(searcher, text, limit=3)) == 3


def test_removed_videos_are_not_found(store, model):
    embed_library(store, model)
    before = find(Searcher.open(store, model), "red", limit=100)
    store.remove([before[0].path])
    after = find(Searcher.open(store, model), "red", limit=100)
    assert before[0].content not in {hit.content for hit in after}
    assert len(after) == len(before) - 1


def test_embedding_embeds_only_what_is_missing(store, model):
    assert embed_library(store, model) == len(store.clip_ids())
    assert embed_library(store, model) == 0
    cache = EmbeddingCache(store, model.fingerprint, model.experts, model.dim)
    cache.drop(store.clip_ids()[:3])
    seen = []
    assert embed_library(store, model, lambda now: seen.append((now.done, now.total))) == 3
    assert seen[-1] == (3, 3)


def test_two_paths_of_one_content_are_one_hit(store, model, tmp_path):
    from tests.fakes import Colour, FakeFence, Talk

    from wordreel.ingest.add import add

    original = Path(store.files()[0].path)
    twin = original.with_name("twin.mp4")
    twin.write_bytes(original.read_bytes())
    os.utime(twin)
    add(store, [twin], [Colour(), Talk()], FakeFence())
    embed_library(store, model)
    hits = find(Searcher.open(store, model), "red", limit=100)
    assert len({hit.content for hit in hits}) == len(hits) == 7


def test_a_searcher_that_is_dropped_releases_its_files_at_once(store, model):
    """Without waiting for the garbage collector: a server opens the library again after every change."""
    embed_library(store, model)
    gc.collect()
    gc.disable()
    try:
        searcher = Searcher.open(store, model, choose_scoring, resident=True)
        searcher.search(Query("red", filters=Filters(kind="video")))
        searcher.search(Query("red"))
        parts = [weakref.ref(part) for part in (searcher.snapshot, searcher.snapshot.gallery)]
        del searcher
        assert [part() for part in parts] == [None, None]
    finally:
        gc.enable()
