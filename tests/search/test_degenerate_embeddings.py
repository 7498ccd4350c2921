"""Broken embeddings: refused or reported with the file and what to do, and never in the way of a search."""

import numpy as np
import pytest
from tests.search.conftest import ColourModel

from wordreel.embed.embed_library import embed_library, embedding_cache
from wordreel.errors import WeightsCorrupt, WeightsError
from wordreel.maintain.verify import verify
from wordreel.maintain.wrong_values import degenerate_embeddings, recompute_embeddings
from wordreel.search.query import Query
from wordreel.search.searcher import Searcher


class Spoilt(ColourModel):
    """One value of one expert's embeddings is wrong, for some videos or for all."""

    def __init__(self, value, experts=(0, 1), every=False):
        self.value, self.rows, self.every = value, list(experts), every
        self.hit = None

    def embed(self, tracks, clips):
        vectors, available = super().embed(tracks, clips)
        if self.every or self.hit in (None, clips[0].content):
            self.hit = clips[0].content
            vectors[:, self.rows, 0] = self.value
        return vectors, available


def paths(hits):
    return [str(hit.path) for hit in hits]


def test_good_embeddings(store, model):
    embed_library(store, model)
    assert {expert for expert, _ in degenerate_embeddings(store, model)} == {"talk"}  # of fakes: all the same


def test_one_expert_that_is_not_finite_is_absent(store):
    model = Spoilt(np.nan, experts=[0])
    clips = embed_library(store, model)
    gallery = embedding_cache(store, model).load()
    assert len(gallery) == clips
    assert np.isfinite(gallery.vectors).all()
    absent = [store.clip(int(i)).content for i in gallery.ids[~gallery.available[:, 0]]]
    assert set(absent) == {model.hit}
    assert recompute_embeddings(store, model) == []
    assert verify(store) == []


def test_a_video_without_any_finite_embedding_is_named(store):
    model = Spoilt(np.inf)
    embed_library(store, model)
    (path,) = store.video(model.hit).paths
    named = [problem for _, problem in degenerate_embeddings(store, model) if path in problem.what]
    assert [problem.what for problem in named] == [f"the model 'colours' has no usable embedding of {path}"]
    assert named[0].next_step.command == "reindex"
    found = Searcher.open(store, model).search(Query("red green blue", limit=50))
    assert len(found) == len(store.videos())


def test_a_model_that_returns_nothing_finite_is_refused(store):
    with pytest.raises(WeightsError, match=r"not finite for .*media.*wordreel doctor"):
        embed_library(store, Spoilt(np.nan, every=True))
    assert len(embedding_cache(store, ColourModel()).raw()) == 0


def test_vectors_of_zeros_are_reported_with_a_file(store):
    class Zero(ColourModel):
        def embed(self, tracks, clips):
            vectors, available = super().embed(tracks, clips)
            return vectors * (len(clips) > 1), available

    embed_library(store, Zero())
    whats = [problem.what for expert, problem in degenerate_embeddings(store, Zero()) if expert == "colour"]
    assert len(whats) == 1
    assert "are nothing but zeros, of " in whats[0]
    assert whats[0].endswith("for one")


def test_damaged_embeddings_hide_nothing(store, model):
    """Values that are not numbers, written into the file behind our back, are not found and hide no other."""
    embed_library(store, model)
    expected = Searcher.open(store, model).search(Query("red", limit=50))
    cache = embedding_cache(store, model)
    best = store.video(expected[0].content)
    ids = cache.raw().ids
    rows = [n for n, clip in enumerate(ids.tolist()) if store.clip(clip).content == best.content]
    file = np.memmap(cache.folder / "vectors-0.bin", np.float32, "r+", shape=(len(ids), 2, 3))
    file[rows] = np.nan
    file.flush()
    found = Searcher.open(store, model).search(Query("red", limit=50))
    assert paths(found) == [path for path in paths(expected) if path != best.paths[0]]
    assert all(np.isfinite(hit.score) for hit in found)
    assert any(best.paths[0] in problem.what for _, problem in degenerate_embeddings(store, model))
    assert "cache" in {problem.kind for problem in verify(store)}  # the checksum


def test_a_query_that_is_not_finite_is_refused(store, model, monkeypatch):
    embed_library(store, model)
    searcher = Searcher.open(store, model)
    broken = model.encode(["red"])
    broken[0].vectors[0, 0] = np.nan
    monkeypatch.setattr(model, "encode", lambda texts: broken)
    with pytest.raises(
        WeightsCorrupt, match=r"'colours' returned values that are not finite for 'red'.*doctor"
    ):
        searcher.search(Query("red"))
