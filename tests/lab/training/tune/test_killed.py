"""Killed anywhere while it tunes, a library answers as before or as tuned; the next tuning ends the same.

What a kill would leave is a copy of the library at that moment, half a file included.
"""

import shutil

import pytest
from tests.lab.training.tune.test_tune import QUICK, _few_everyday_queries, captions, made  # noqa: F401

from wordreel.catalogue.store import LibraryStore
from wordreel.embed import embedding_cache as embeddings
from wordreel.embed import use as using
from wordreel.embed.embed_library import embedding_cache
from wordreel.lab.training.tune import tune as tuning
from wordreel.library import Library
from wordreel.models import model_store
from wordreel.util import atomic

WORDS = ("a zorp", "a wug", "the sea")


def answers(library):
    return [[(str(hit.path), hit.score) for hit in library.search(word)] for word in WORDS]


def half_written(path, data):
    path.write_bytes(data[: len(data) // 2])


def half_copied(source, target):
    target.write_bytes(source.read_bytes()[:1000])


MOMENTS = [
    (atomic, "write_and_sync", half_written),
    (atomic, "sync_dir", None),
    (shutil, "copyfile", half_copied),
    (embeddings.EmbeddingCache, "append", None),
    (using, "embed_library", None),
    (LibraryStore, "set_setting", None),
]


@pytest.fixture(scope="module")
def tuned(made, tmp_path_factory):  # noqa: F811
    """A library that was tuned: what it answered before, what it answers now, and all moments between."""
    root = tmp_path_factory.mktemp("killed")
    place = root / "library"
    shutil.copytree(made / "library", place)
    found, left = [], []
    copy = shutil.copyfile

    def noted(where, name, half):
        old, busy = getattr(where, name), []

        def called(*given, **named):
            inside = any(str(one).startswith(str(place)) for one in given)
            if not busy and (half is None or inside):
                busy.append(1)
                if half:
                    half(*given)
                left.append(root / f"{len(left)}-{name}")
                shutil.copytree(place, left[-1], copy_function=copy)
                busy.clear()
            return old(*given, **named)

        return called

    library = Library(place, create=False)
    before = answers(library)
    with pytest.MonkeyPatch.context() as patch:
        cross_validate, gather = tuning.cross_validate, tuning.gather
        patch.setattr(tuning, "gather", lambda *given: found.append(gather(*given)) or found[-1])
        patch.setattr(
            tuning, "cross_validate", lambda *given: found.append(cross_validate(*given)) or found[-1]
        )
        for where, name, half in MOMENTS:
            patch.setattr(where, name, noted(where, name, half))
        _, report = tuning.tune(library.store, library.weights, captions(), QUICK)
    return left, found, before, answers(Library(place, create=False)), report


@pytest.mark.slow
def test_nothing_is_lost_and_the_next_tuning_ends_the_same(tuned, monkeypatch):
    left, found, before, after, report = tuned
    monkeypatch.setattr(tuning, "gather", lambda *given: found[0])
    monkeypatch.setattr(tuning, "cross_validate", lambda *given: found[1])
    assert {place.name.partition("-")[2] for place in left} == {name for _, name, _ in MOMENTS}
    for place in left:
        library = Library(place, create=False)
        for one in model_store.stored_models(library.store):
            whole = model_store.open_model(library.store, library.weights, one.fingerprint)
            assert whole.fingerprint == one.fingerprint
        in_use = model_store.in_use(library.store)
        assert in_use in ("reel", report.fingerprint)
        assert answers(library) == (before if in_use == "reel" else after)
        _, again = tuning.tune(library.store, library.weights, captions(), QUICK)
        assert (again.model, again.fingerprint) == (report.model, report.fingerprint), place.name
        again = Library(place, create=False)
        assert answers(again) == after
        assert [one.name for one in model_store.stored_models(again.store)] == ["reel-tuned"]
        assert again.use("reel").embedded == 0
        assert answers(again) == before
        assert embedding_cache(again.store, again.model).missing() == []
