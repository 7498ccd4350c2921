"""A library on a disk that cannot be written is read as it is, and nothing of it changes."""

import os
import sqlite3

import pytest
from tests.digest import digest_of
from tests.fakes import FakeFence, experts, write_media

from wordreel.catalogue.store import LibraryStore
from wordreel.errors import LibraryError, LibraryReadOnly
from wordreel.ingest.add import add
from wordreel.maintain.backup import backup, restore
from wordreel.maintain.verify import verify


@pytest.fixture
def locked(store, media, monkeypatch):
    """A filled library whose folder refuses writes, also for the administrator that tests may run as."""
    for i in range(3):
        write_media(media / f"{i}.mp4", seconds=50.0 + i, seed=i)
    add(store, [media], experts(), FakeFence())
    store.close()
    real = os.access

    def access(path, mode, **more):
        inside = str(path).startswith(str(store.path))
        return False if inside and mode & os.W_OK else real(path, mode, **more)

    monkeypatch.setattr(os, "access", access)
    return store.path


def everything(folder):
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_what_is_in_it_can_be_read(locked):
    before = everything(locked)
    with LibraryStore.open(locked) as store:
        assert store.read_only
        assert len(store.videos()) == 3
        assert verify(store) == []
        tracks = [row for row in store.tracks() if row.hash]
        assert store.track_files.load(tracks[0].hash).values.shape == (tracks[0].rows, tracks[0].dim)
    assert everything(locked) == before


def test_writing_says_why_not(locked, media):
    before = everything(locked)
    with LibraryStore.open(locked) as store:
        with pytest.raises(LibraryReadOnly, match="cannot be written; copy the library"):
            store.remove([media / "0.mp4"])
        with pytest.raises(LibraryReadOnly):
            add(store, [media], experts(), FakeFence())
        with pytest.raises(LibraryError, match="readonly"):
            store.catalogue.run("DELETE FROM files")
    assert everything(locked) == before


def test_the_log_of_a_killed_writer_counts(locked):
    """Whoever reads the file alone would miss what is only in the log."""
    writer = sqlite3.connect(locked / "catalogue.sqlite")
    writer.execute("INSERT INTO settings (name, value) VALUES ('late', 'yes')")
    writer.commit()
    assert (locked / "catalogue.sqlite-wal").stat().st_size > 0
    with LibraryStore.open(locked) as store:
        assert store.setting("late") == "yes"
    writer.close()


def test_an_old_library_has_to_be_copied_first(locked):
    old = sqlite3.connect(locked / "catalogue.sqlite")
    old.execute("PRAGMA user_version = 3")
    old.close()
    with pytest.raises(LibraryError, match=r"older wordreel .* copy it"):
        LibraryStore.open(locked)


def test_it_can_be_backed_up(locked, tmp_path):
    with LibraryStore.open(locked) as store:
        assert backup(store, tmp_path / "copy").damaged == ()
        assert backup(store, tmp_path / "copy").copied == 0
        restore(tmp_path / "copy", tmp_path / "back")
        with LibraryStore.open(tmp_path / "back") as again:
            assert digest_of(again) == digest_of(store)
            assert not again.read_only
