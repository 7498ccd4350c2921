"""What a writer that died left behind is swept when the library is opened, and nothing else is."""

import errno
from pathlib import Path

import numpy as np
import pytest
from tests.fakes import FakeFence, experts, write_media
from tests.search.conftest import ColourModel

import wordreel
from wordreel.catalogue import lock
from wordreel.catalogue.connection import NAME
from wordreel.catalogue.store import LibraryStore
from wordreel.embed.embed_library import embed_library, embedding_cache
from wordreel.errors import DiskError, LibraryReadOnly
from wordreel.ingest.add import add
from wordreel.maintain.verify import verify
from wordreel.types import Track
from wordreel.util import atomic


@pytest.fixture
def filled(store, media):
    for i in range(2):
        write_media(media / f"{i}.mp4", seconds=50.0 + i, seed=i)
    add(store, [media], experts(), FakeFence())
    return store


def leave_behind(store):
    """What a killed writer may leave: a track that nothing uses, a staged one, a content without file."""
    ones = Track(np.ones((1, 1), np.float32), np.zeros((1, 2)))
    store.track_files.commit(store.track_files.stage(ones))
    store.track_files.stage(ones)
    store.catalogue.run("DELETE FROM files WHERE path = (SELECT min(path) FROM files)")
    return {problem.kind for problem in verify(store)}


def test_leftovers_of_a_dead_writer_are_swept_at_the_next_opening(filled):
    assert leave_behind(filled) == {"orphan", "stray", "unreferenced"}
    filled.close()
    with LibraryStore.open(filled.path) as again:  # the last writer released its lock: they are not its
        assert {problem.kind for problem in verify(again)} == {"orphan", "stray", "unreferenced"}
    (filled.path / "lock").write_text("4194304\n")
    with LibraryStore.open(filled.path) as again:
        assert verify(again) == []
        assert len(again.files()) == 1
    assert (filled.path / "lock").read_text() == ""


def test_nothing_is_swept_while_somebody_writes(filled):
    leave_behind(filled)
    with filled.writing():
        LibraryStore.open(filled.path).close()
    assert {problem.kind for problem in verify(filled)} == {"orphan", "stray", "unreferenced"}


def test_a_lost_catalogue_does_not_cost_the_tracks(filled):
    tracks = list(filled.track_files.all())
    filled.close()
    for path in filled.path.glob(f"{NAME}*"):
        path.unlink()
    (filled.path / "lock").write_text("4194304\n")
    with LibraryStore.create_or_open(filled.path) as again:
        assert list(again.track_files.all()) == tracks


def test_a_file_and_what_is_known_of_it_go_together(filled, media, monkeypatch):
    """Stopped after the commit, a removal leaves files that nothing names, and no rows."""

    def die(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(filled.track_files, "remove_all", die)
    with pytest.raises(KeyboardInterrupt):
        filled.remove([media / "0.mp4"])
    assert {problem.kind for problem in verify(filled)} == {"orphan"}
    filled.close()
    with LibraryStore.open(filled.path) as again:
        assert verify(again) == []


def test_a_disk_that_cannot_be_written_refuses_a_writer_in_words(filled, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(lock.os, "pwrite", full)
    with pytest.raises(LibraryReadOnly, match="No space left"):
        filled.remove_missing()
    monkeypatch.undo()
    assert filled.remove_missing() == []
    monkeypatch.setattr(Path, "unlink", full)
    with pytest.raises(DiskError, match="No space left"):
        filled.remove([filled.files()[0].path])


def test_searches_do_without_caches_on_a_full_disk(filled, monkeypatch):
    with wordreel.Library(filled.path, model=ColourModel()) as library:
        library.banks.build("words", ["red x", "green y", "blue z"], "made up")
        before = [hit.path for hit in library.search("red", limit=5)]

        def full(*_):
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(atomic, "write_and_sync", full)
        assert [hit.path for hit in library.search("red", limit=5)] == before
        corrected = [hit.path for hit in library.search("red", norm="is", bank="words", beta=20.0, limit=5)]
        assert sorted(corrected) == sorted(before)


def test_looking_at_an_empty_library_leaves_nothing_unfinished(store):
    with wordreel.Library(store.path, model=ColourModel()) as library:
        assert list(library.search("red")) == []
    assert verify(store) == []


def test_embeddings_are_compacted_though_old_files_cannot_be_deleted(filled, media, monkeypatch):
    model = ColourModel()
    embed_library(filled, model)
    filled.remove([media / "0.mp4"])
    cache = embedding_cache(filled, model)

    def refuse(*_, **__):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(Path, "unlink", refuse)
    assert cache.compact() > 0
    monkeypatch.undo()
    assert verify(filled) == []
    assert len(cache.load()) == len(filled.clip_ids())


def test_a_track_that_cannot_be_written_is_an_error_of_the_disk(filled, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(atomic, "write_and_sync", full)
    with pytest.raises(DiskError, match="No space left on device; everything added so far is saved"):
        filled.track_files.put("ab" * 32, b"a track")
