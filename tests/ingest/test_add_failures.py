"""What can go wrong while adding, and what is left standing afterwards."""

import errno
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from tests.fakes import Broken, Colour, FakeFence, experts, write_media

from wordreel.catalogue import tracks as tracks_module
from wordreel.catalogue.store import LibraryStore
from wordreel.errors import LibraryBusy, LibraryError, WeightsMissing
from wordreel.ingest.add import add
from wordreel.maintain.verify import verify
from wordreel.types import Track


def test_bad_files_do_not_stop_the_rest(store, media):
    write_media(media / "good.mp4", seed=1)
    write_media(media / "bad.mp4", bad="no picture in it")
    write_media(media / "late.mp4", seconds=300.0, breaks=100.0)
    (media / "notes.mp4").write_text("not media at all")
    (media / "notes.txt").write_text("a note")
    report = add(store, [media], experts(), FakeFence())
    assert [Path(p).name for p in report.added] == ["good.mp4"]
    assert {Path(p).name: r for p, r in report.failed} == {
        "bad.mp4": "no picture in it",
        "late.mp4": "the stream ends in the middle",
        "notes.mp4": "not media",
    }
    assert report.ignored == 1
    assert len(store.failures()) == 3
    assert verify(store) == []


def test_failures_are_remembered_until_something_changes(store, media):
    path = write_media(media / "bad.mp4", bad="broken")
    add(store, [media], [Colour()], FakeFence())
    fence = FakeFence()
    report = add(store, [media], [Colour()], fence)
    assert (report.failed, report.still_failed, fence.probed) == ([], [(str(path), "broken")], [])
    assert add(store, [media], [Colour()], FakeFence(), retry_failed=True).failed == [(str(path), "broken")]
    assert add(store, [media], [Colour(version=2)], FakeFence()).failed, "other experts may fare better"
    write_media(path, seed=1)
    assert add(store, [media], [Colour()], FakeFence()).added == [str(path)]
    assert store.failures() == []


def test_failures_of_deleted_files_are_forgotten(store, media):
    path = write_media(media / "bad.mp4", bad="broken")
    add(store, [media], [Colour()], FakeFence())
    path.unlink()
    add(store, [media], [Colour()], FakeFence())
    assert store.failures() == []


def test_file_that_turns_bad_leaves_the_library(store, media):
    path = write_media(media / "a.mp4")
    add(store, [media], experts(), FakeFence())
    write_media(path, bad="cut off")
    assert add(store, [media], experts(), FakeFence()).failed == [(str(path), "cut off")]
    assert (store.files(), store.clips()) == ([], [])
    assert verify(store) == []


def test_explicitly_named_nonsense_is_a_failure(store, media):
    text = media / "notes.txt"
    text.write_text("hello")
    pipe = media / "pipe"
    os.mkfifo(pipe)
    missing = media / "missing.mp4"
    report = add(store, [text, pipe, missing], [Colour()], FakeFence())
    assert dict(report.failed) == {
        str(text): "not media",
        str(pipe): "not a regular file",
        str(missing): "no such file or folder",
    }


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: ValueError("cannot see"), "expert broken: cannot see"),
        (lambda: RuntimeError(), "expert broken: RuntimeError"),
    ],
)
def test_expert_failure_is_the_files_failure(store, media, make, reason):
    path = write_media(media / "a.mp4")
    report = add(store, [media], [Colour(), Broken(make)], FakeFence())
    assert report.failed == [(str(path), reason)]
    assert (store.files(), list(store.track_files.all()), store.track_files.strays()) == ([], [], [])


def test_failing_new_expert_keeps_what_is_known(store, media):
    path = write_media(media / "a.mp4")
    add(store, [media], [Colour()], FakeFence())
    report = add(store, [media], [Colour(), Broken(lambda: ValueError("no"))], FakeFence())
    assert report.failed == [(str(path), "expert broken: no")]
    assert len(store.files()) == 1
    assert [t.expert for t in store.tracks()] == ["colour"]


@pytest.mark.parametrize(
    ("values", "times"),
    [
        ([[np.nan, 0, 0, 0]], [[0, 1]]),
        ([[np.inf, 0, 0, 0]], [[0, 1]]),
        ([[0, 0, 0]], [[0, 1]]),
        ([[0, 0, 0, 0]], [[1, 0]]),
        ([[0, 0, 0, 0]] * 2, [[5, 6], [0, 1]]),
        ([[0, 0, 0, 0]], [[np.nan, 1]]),
    ],
)
def test_senseless_tracks_are_refused(store, media, values, times):
    class Senseless(Colour):
        def extract(self, media):
            return Track(np.array(values, np.float32), np.array(times, np.float64))

    write_media(media / "a.mp4")
    report = add(store, [media], [Senseless()], FakeFence())
    assert len(report.failed) == 1
    assert report.failed[0][1].startswith("expert colour: returned")
    assert store.files() == []


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (MemoryError, LibraryError, "out of memory"),
        (lambda: WeightsMissing("fetch"), WeightsMissing, "fetch"),
    ],
)
def test_what_concerns_every_file_stops_and_keeps(store, media, error, kind, text):
    write_media(media / "a.mp4", seed=1)
    add(store, [media], [Colour()], FakeFence())
    write_media(media / "b.mp4", seed=2)
    with pytest.raises(kind, match=text):
        add(store, [media], [Colour(), Broken(error)], FakeFence())
    assert len(store.files()) == 1
    assert verify(store) == []
    assert len(add(store, [media], [Colour()], FakeFence()).added) == 1


@pytest.mark.parametrize("where", ["write_and_sync", "sync_dir"])
def test_full_disk_stops_cleanly_and_resumes(store, media, monkeypatch, where):
    for i in range(4):
        write_media(media / f"{i}.mp4", seed=i)
    real, calls = getattr(tracks_module, where), []

    def full(*args):
        calls.append(args)
        if len(calls) > 4:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(*args)

    monkeypatch.setattr(tracks_module, where, full)
    with pytest.raises(LibraryError, match="free some space"):
        add(store, [media], experts(), FakeFence(), jobs=1)
    monkeypatch.undo()
    kept = len(store.files())
    assert kept < 4
    assert [p for p in verify(store) if p.kind != "orphan"] == []
    add(store, [media], experts(), FakeFence())
    assert len(store.files()) == 4
    assert verify(store) == []


def test_full_database_stops_cleanly(store, media):
    for i in range(12):
        write_media(media / f"{i}.mp4", seconds=900.0, seed=i)
    add(store, [media / "0.mp4"], [Colour()], FakeFence())
    pages = store.catalogue.rows("PRAGMA page_count")[0][0]
    store.catalogue.rows(f"PRAGMA max_page_count = {pages + 3}")
    with pytest.raises(LibraryError, match="free some space"):
        add(store, [media], experts(), FakeFence())
    store.catalogue.rows("PRAGMA max_page_count = 1000000")
    add(store, [media], experts(), FakeFence())
    assert len(store.files()) == 12
    assert verify(store) == []


def test_file_that_changes_while_it_is_read(store, media):
    path = write_media(media / "a.mp4")
    fence = FakeFence(on_stream=lambda p: write_media(Path(p), seed=5, seconds=99.0))
    report = add(store, [media], [Colour()], fence)
    assert report.failed == [(str(path), "changed while it was being read; add it again")]
    assert len(add(store, [media], [Colour()], FakeFence()).added) == 1


def test_interrupt_leaves_a_sound_library(store, media):
    for i in range(6):
        write_media(media / f"{i}.mp4", seed=i)

    def interrupt(progress):
        if progress.done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        add(store, [media], experts(), FakeFence(), on_progress=interrupt)
    assert len(store.files()) == 3
    assert verify(store) == []
    assert len(add(store, [media], experts(), FakeFence()).added) == 3


def test_second_writer_is_refused_and_readers_are_not(store, media, tmp_path):
    write_media(media / "a.mp4")
    code = (
        "import sys\nfrom wordreel.catalogue.store import LibraryStore\n"
        "with LibraryStore.open(sys.argv[1]) as s:\n    print(len(s.files()))\n    s.remove_missing()\n"
    )
    with store.writing():
        done = subprocess.run(
            [sys.executable, "-c", code, str(store.path)],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.stdout == "0\n"
        assert f"LibraryBusy: another wordreel (process {os.getpid()}) is writing" in done.stderr
        with (
            LibraryStore.open(store.path) as other,
            pytest.raises(LibraryBusy, match="this process is already writing"),
        ):
            add(other, [media], [Colour()], FakeFence())
        caught = []

        def try_it():
            try:
                store.remove_missing()
            except LibraryError as error:
                caught.append(error)

        thread = threading.Thread(target=try_it)
        thread.start()
        thread.join()
        assert len(caught) == 1
    assert len(add(store, [media], [Colour()], FakeFence()).added) == 1


def test_interrupt_does_not_wait_for_a_long_expert(store, media, monkeypatch):
    monkeypatch.setattr("wordreel.ingest.run.STOP_TIMEOUT", 0.1)
    write_media(media / "a.mp4")
    began, release = threading.Event(), threading.Event()

    class Long(Colour):
        def extract(self, media):
            began.set()
            release.wait(300.0)
            return super().extract(media)

    def interrupt(progress):
        assert began.wait(120.0)
        raise KeyboardInterrupt

    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        add(store, [media], [Long()], FakeFence(), on_progress=interrupt)
    assert time.monotonic() - start < 120.0
    release.set()
    assert len(add(store, [media], [Colour()], FakeFence()).added) == 1
    assert verify(store) == []
