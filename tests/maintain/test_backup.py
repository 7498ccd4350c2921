"""A backup is the library as of one moment, whatever happens meanwhile, and comes back as it was."""

import json
import os
import threading

import pytest
from tests.digest import digest_of
from tests.fakes import Colour, FakeFence, experts, write_media

from wordreel.catalogue.store import LibraryStore
from wordreel.errors import LibraryError
from wordreel.ingest.add import add
from wordreel.maintain.backup import MANIFEST, backup, restore
from wordreel.maintain.verify import verify


@pytest.fixture
def filled(store, media):
    for i in range(4):
        write_media(media / f"{i}.mp4", seconds=50.0 + i, seed=i)
    add(store, [media], experts(), FakeFence())
    return store


def tree(folder):
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def damage(store, which=0):
    digest = sorted(row.hash for row in store.tracks() if row.hash)[which]
    path = store.track_files.path(digest)
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    return digest


def test_what_comes_back_is_what_was_there(filled, tmp_path):
    report = backup(filled, tmp_path / "copy")
    assert report.damaged == ()
    assert report.copied == report.tracks == len({row.hash for row in filled.tracks() if row.hash})
    restored = restore(tmp_path / "copy", tmp_path / "back")
    assert restored.damaged == ()
    assert restored.bytes == report.bytes
    with LibraryStore.open(tmp_path / "back") as again:
        assert digest_of(again) == digest_of(filled)
        assert verify(again) == []


def test_a_backup_can_be_opened_as_a_library(filled, tmp_path):
    backup(filled, tmp_path / "copy")
    with LibraryStore.open(tmp_path / "copy") as copy:
        assert [v.content for v in copy.videos()] == [v.content for v in filled.videos()]


def test_a_second_backup_copies_only_what_is_new(filled, media, tmp_path):
    backup(filled, tmp_path / "copy")
    write_media(media / "new.mp4", seconds=20, seed=9)
    (media / "0.mp4").unlink()
    filled.remove_missing()
    add(filled, [media], experts(), FakeFence())
    report = backup(filled, tmp_path / "copy")
    assert 0 < report.copied < report.tracks
    restore(tmp_path / "copy", tmp_path / "back")
    with LibraryStore.open(tmp_path / "back") as again:
        assert digest_of(again) == digest_of(filled)
        # what the library no longer has is gone from the backup too
        assert set(again.track_files.all()) == {row.hash for row in filled.tracks() if row.hash}
    assert sum(p.suffix == ".safetensors" for p in tree(tmp_path / "copy")) == report.tracks


def test_a_damaged_track_is_named_and_does_not_replace_a_good_copy(filled, tmp_path):
    backup(filled, tmp_path / "copy")
    digest = damage(filled)
    assert backup(filled, tmp_path / "copy").damaged == ()  # the good copy is still there
    assert backup(filled, tmp_path / "other").damaged == (digest,)
    assert not [p for p in tree(tmp_path / "other") if digest in p.name]


def test_a_damaged_backup_is_noticed(filled, tmp_path):
    backup(filled, tmp_path / "copy")
    with LibraryStore.open(tmp_path / "copy") as copy:
        digest = damage(copy)
    assert restore(tmp_path / "copy", tmp_path / "back").damaged == (digest,)


def test_others_add_and_remove_meanwhile(filled, media, tmp_path):
    """Every backup that is made while a writer adds and removes is sound."""
    stop = threading.Event()

    def write():
        with LibraryStore.open(filled.path) as writer:
            for number in range(10**6):
                if stop.is_set():
                    return
                path = write_media(media / "passing.mp4", seconds=30, seed=100 + number)
                add(writer, [media], experts(), FakeFence())
                path.unlink()
                writer.remove_missing()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for number in range(5):
            assert backup(filled, tmp_path / "copy").damaged == ()
            restore(tmp_path / "copy", tmp_path / f"back{number}")
    finally:
        stop.set()
        thread.join()
    for number in range(5):
        with LibraryStore.open(tmp_path / f"back{number}") as again:
            assert [p for p in verify(again) if not p.note] == []


@pytest.mark.parametrize("at", range(0, 40, 3))
def test_stopped_anywhere_the_last_backup_is_still_whole(filled, media, tmp_path, monkeypatch, at):
    """The disk fails at one rename after the other: the previous backup can be restored every time."""
    backup(filled, tmp_path / "copy")
    before = digest_of(filled)
    (media / "0.mp4").unlink()
    filled.remove_missing()
    write_media(media / "new.mp4", seconds=20, seed=9)
    add(filled, [media], experts(), FakeFence())
    after = digest_of(filled)
    calls = 0
    real = os.fsync

    def failing(handle):
        nonlocal calls
        calls += 1
        if calls > at:
            raise OSError(28, "No space left on device")
        real(handle)

    monkeypatch.setattr(os, "fsync", failing)
    refusal = ""
    try:
        backup(filled, tmp_path / "copy")
    except LibraryError as error:
        refusal = str(error)
    monkeypatch.setattr(os, "fsync", real)
    assert not refusal or "No space left" in refusal
    restore(tmp_path / "copy", tmp_path / "back")
    with LibraryStore.open(tmp_path / "back") as again:
        assert digest_of(again) in ((before, after) if refusal else (after,))
        assert [p for p in verify(again) if not p.note] == []
    assert backup(filled, tmp_path / "copy").damaged == ()


def test_folders_that_hold_something_else_are_refused(filled, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("years of work")
    with pytest.raises(LibraryError, match="neither empty nor a backup"):
        backup(filled, tmp_path / "full")
    backup(filled, tmp_path / "copy")
    with pytest.raises(LibraryError, match="is not empty"):
        restore(tmp_path / "copy", tmp_path / "full")
    with pytest.raises(LibraryError, match="no finished backup"):
        restore(tmp_path / "full", tmp_path / "back")
    with pytest.raises(LibraryError, match="inside the library"):
        backup(filled, filled.path / "copy")
    assert [path.name for path in tree(tmp_path / "full")] == ["thesis.txt"]


def test_a_backup_of_another_library_is_not_overwritten(filled, media, tmp_path):
    backup(filled, tmp_path / "copy")
    with LibraryStore.create_or_open(tmp_path / "second") as second:
        add(second, [media], (Colour(),), FakeFence())
        with pytest.raises(LibraryError, match="another library"):
            backup(second, tmp_path / "copy")
    # the library itself may move, and goes on with its backup
    filled.close()
    filled.path.rename(tmp_path / "moved")
    with LibraryStore.open(tmp_path / "moved") as moved:
        assert backup(moved, tmp_path / "copy").copied == 0


def test_checkpoints_come_along(filled, tmp_path):
    model = filled.path / "models" / "abc"
    model.mkdir(parents=True)
    (model / "model.json").write_text("{}")
    backup(filled, tmp_path / "copy")
    restore(tmp_path / "copy", tmp_path / "back")
    assert (tmp_path / "back" / "models" / "abc" / "model.json").read_text() == "{}"


def test_a_first_backup_that_was_stopped_can_be_finished(filled, tmp_path):
    (tmp_path / "copy").mkdir()
    manifest = {"library": filled.setting("library id"), "finished": False}
    backup(filled, tmp_path / "probe")
    manifest["library"] = filled.setting("library id")
    (tmp_path / "copy" / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(LibraryError, match="no finished backup"):
        restore(tmp_path / "copy", tmp_path / "back")
    assert backup(filled, tmp_path / "copy").damaged == ()
    assert restore(tmp_path / "copy", tmp_path / "back").damaged == ()


def test_a_backup_stopped_before_its_manifest_can_be_finished(filled, tmp_path):
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / f"{MANIFEST}.new").write_text("{")
    assert backup(filled, tmp_path / "copy").damaged == ()
    assert restore(tmp_path / "copy", tmp_path / "back").damaged == ()
