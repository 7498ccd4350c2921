"""What another program does to the library while a server runs, and libraries that are not ready."""

import gc
import weakref

import numpy as np
import pytest
from tests.serve.conftest import Model, opened, running

from wordreel.catalogue.store import LibraryStore
from wordreel.embed.embed_library import embed_library, embedding_cache
from wordreel.embed.switch_model import switch
from wordreel.errors import NextStep, WordreelError
from wordreel.library import Library
from wordreel.serve import live
from wordreel.serve import service as timing


class Other(Model):
    """Sees green where the first sees red: the same words, another order."""

    name = "other"
    fingerprint = "fedcba9876543210"

    def embed(self, tracks, clips):
        vectors, available = super().embed(tracks, clips)
        return vectors[..., [1, 0, 2]], available


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(timing, "REOPEN_EVERY", 0.0)
    monkeypatch.setattr(timing, "WATCH_EVERY", 0.1)


def order(answer):
    return [(hit["content"], round(hit["score"], 5)) for hit in answer["hits"]]


def test_another_model_answers_once_it_is_used(site, library, monkeypatch):
    monkeypatch.setattr(live, "open_model", lambda store, weights: Other())
    before = site.get("/api/search?text=red").json
    content = before["hits"][0]["content"]
    strip = site.get(f"/api/videos/{content}/match?text=red").json["scores"]
    old = weakref.ref(site.service.model)
    with LibraryStore.open(library) as other:
        switch(other, Other(), "other")
    told = site.until("/api/status", lambda found: found["model"]["name"] == "other")
    assert told["model"]["fingerprint"] == Other.fingerprint
    assert (told["problem"], told["unembedded"]) == (None, 0)
    fresh = Library(library, model=Other())
    wanted = [(hit.content, round(hit.score, 5)) for hit in fresh.search("red")]
    after = site.get("/api/search?text=red").json
    assert order(after) == wanted != order(before)
    assert site.get(f"/api/videos/{content}/match?text=red").json["scores"] != strip
    assert site.service.library.model is site.service.model, "banks are those of the new model"
    gc.collect()
    assert old() is None, "nothing holds on to the model that is no longer used"
    alike = [(hit.content, round(hit.score, 5)) for hit in fresh.search(like=before["hits"][0]["path"])]
    assert order(site.get(f"/api/search?like={content}").json) == alike


def test_a_model_that_cannot_be_opened_leaves_the_old_one_at_work(site, library, monkeypatch):
    def broken(store, weights):
        raise WordreelError("it needs torch", NextStep("go back to the default model", command="use joint"))

    monkeypatch.setattr(live, "open_model", broken)
    before = order(site.get("/api/search?text=red").json)
    with LibraryStore.open(library) as other:
        other.set_setting("model", "0000111122223333")
    told = site.until("/api/status", lambda found: found["problem"])
    assert "'colours' still answers" in told["problem"]
    assert "needs torch" in told["problem"]
    assert "owner of the library" in told["problem"]
    assert order(site.get("/api/search?text=red").json) == before


def test_embeddings_made_by_another_program_are_seen(site, library):
    """`wordreel reindex` writes no row of the catalogue."""
    with LibraryStore.open(library) as other:
        embedding_cache(other, Model()).clear()
        told = site.until("/api/status", lambda found: found["clips"] == 0)
        assert told["unembedded"] > 0
        assert embed_library(other, Model()) == told["unembedded"]
    site.until("/api/status", lambda found: found["clips"] == told["unembedded"])
    assert len(site.get("/api/search?text=red").json["hits"]) == 4


def test_banks_made_by_another_program_are_seen(site, library):
    assert site.get("/api/search?text=red&norm=is").code == "bad_bank"
    opened(library).banks.build("mine", ["red", "green", "blue dogs"], "a test")
    site.until("/api/status", lambda found: [bank["name"] for bank in found["banks"]] == ["mine"])
    site.until("/api/search?text=red&norm=is", lambda found: "mine" in found.get("norm", ""))


@pytest.fixture
def stale(library):
    """A library whose model has embedded nothing."""
    with LibraryStore.open(library) as store:
        clips = len(embedding_cache(store, Model()).raw())
        embedding_cache(store, Model()).clear()
    return library, clips


def test_a_server_that_only_shows_says_who_must_embed(stale):
    library, clips = stale
    with running(library, read_only=True) as site:
        told = site.get("/api/status").json
        assert (told["clips"], told["unembedded"]) == (0, clips)
        for words in (f"all {clips} moments", "owner of the library"):
            assert words in told["problem"]
        content = site.get("/api/videos").json["items"][0]["content"]
        for path in (
            "/api/search?text=red",
            "/api/search?text=red&then=blue",
            f"/api/search?like={content}",
            "/api/search?text=red&compare=true",
        ):
            answer = site.get(path)
            assert (answer.status, answer.code) == (409, "not_embedded"), path
            assert answer.json["error"]["message"] == told["problem"]
            assert answer.json["error"]["next_step"]["command"] == "use joint"
        with LibraryStore.open(library) as owner:
            embed_library(owner, Model())
        site.until("/api/status", lambda found: found["problem"] is None)
        assert len(site.get("/api/search?text=red").json["hits"]) == 4


def test_a_part_that_cannot_be_found_is_counted(library):
    with LibraryStore.open(library) as store:
        cache = embedding_cache(store, Model())
        ids = cache.raw().ids
        cache.drop(np.asarray(ids[:2]))
    with running(library, read_only=True) as site:
        told = site.get("/api/status").json
        assert told["unembedded"] == 2
        assert f"2 of {len(ids)} moments" in told["problem"]
        assert site.get("/api/search?text=red").status == 200


def test_a_library_without_the_models_eyes_says_so_and_the_rest_is_searched(library, monkeypatch):
    monkeypatch.setattr(Model, "eyes", "clip")
    monkeypatch.setattr(Model, "former_eyes", "colour")
    with running(library, read_only=True) as site:
        problem = site.get("/api/status").json["problem"]
        assert "without the expert clip" in problem
        assert "add the same folders again" in problem
        assert site.get("/api/search?text=red").status == 200


def test_a_server_that_may_write_embeds_by_itself(stale):
    library, clips = stale
    with running(library) as site:
        told = site.until("/api/status", lambda found: found["clips"] == clips)
        assert told["problem"] is None
        assert [job["kind"] for job in site.get("/api/jobs").json["jobs"]] == ["embed"]
