"""Every way a file can stand to the library, and what `add` makes of it."""

import os
import shutil
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.digest import digest_of
from tests.fakes import Colour, FakeFence, Talk, experts, write_media
from tests.lines import lines_with

from wordreel.catalogue.store import LibraryStore
from wordreel.ingest.add import add
from wordreel.maintain.verify import verify
from wordreel.types import Absent, Track


def age(*paths: Path) -> None:
    """Long ago, so that the stamp can be trusted. (The change time cannot be set: wait for it instead.)"""
    for path in paths:
        os.utime(path, ns=(10**18, 10**18))


@pytest.fixture(autouse=True)
def _no_race(monkeypatch):
    """These tests run within one tick of the clock; what happens in a tick has a test of its own."""
    monkeypatch.setattr("wordreel.ingest.plan.CLOCK_TICK_NS", -(10**12))


def names(paths) -> list[str]:
    return sorted(Path(p).name for p in paths)


def test_first_add_then_nothing_to_do(store, media):
    for i in range(3):
        write_media(media / f"v{i}.mp4", seconds=20.0 + 50 * i, seed=i)
    fence = FakeFence()
    first = add(store, [media], experts(), fence)
    assert names(first.added) == ["v0.mp4", "v1.mp4", "v2.mp4"]
    assert len(fence.streamed) == 3
    assert first.media_seconds == 20 + 70 + 120
    again = FakeFence()
    second = add(store, [media], experts(), again)
    assert (second.skipped, second.added, again.probed, again.streamed) == (3, [], [], [])
    assert verify(store) == []


def test_tracks_equal_one_extraction_of_the_whole(store, media):
    path = write_media(media / "long.mp4", seconds=400.0, seed=3)
    add(store, [path], [Colour(span=60.0), Talk(span=90.0)], FakeFence())
    content = store.files()[0].content
    whole = next(iter(FakeFence().stream(path, [Colour().card.need], window=1e6))).parts[0]
    expected = Colour().extract(whole)
    got = store.track(content, "colour")
    assert isinstance(got, Track)
    assert np.array_equal(got.values, expected.values)
    assert np.array_equal(got.times, expected.times)
    assert [w.start for w in store.words(content)] == [0.0, 90.0, 180.0, 270.0, 360.0]
    assert store.words(content)[-1].end == 400.0


def test_absent_is_kept_with_its_reason(store, media):
    write_media(media / "silent.mp4", sound=False)
    write_media(media / "song.mp3", kind="audio", seed=1)
    write_media(media / "picture.png", kind="image", seed=2, seconds=0)
    add(store, [media], experts(), FakeFence())
    by_name = {Path(f.path).name: f.content for f in store.files()}
    assert store.track(by_name["silent.mp4"], "talk") == Absent("no sound stream")
    assert store.track(by_name["song.mp3"], "colour") == Absent("no picture stream")
    assert isinstance(store.track(by_name["picture.png"], "colour"), Track)
    assert store.track(by_name["song.mp3"], "never asked") is None
    for content in by_name.values():
        wanted = ("talk", "never asked", "colour")
        slow = {name: store.track(content, name) for name in wanted}
        (found,) = store.present_tracks([content], wanted)
        assert list(found) == [name for name in wanted if isinstance(slow[name], Track)]
        for name, track in found.items():
            np.testing.assert_array_equal(track.values, slow[name].values)
    assert store.stats().experts["colour"] == (2, 1)
    assert verify(store) == []


def test_changed_file_replaces_its_old_content(store, media):
    path = write_media(media / "a.mp4", seed=1)
    add(store, [media], experts(), FakeFence())
    old = store.files()[0].content
    write_media(path, seed=2, seconds=31.0)
    report = add(store, [media], experts(), FakeFence())
    assert names(report.changed) == ["a.mp4"]
    assert store.video(old) is None
    assert store.stats().contents == 1
    assert verify(store) == []


def test_moved_file_is_not_decoded_again(store, media):
    path = write_media(media / "a.mp4", seed=1)
    add(store, [media], experts(), FakeFence())
    clips = store.clips()
    path.rename(media / "b.mp4")
    fence = FakeFence()
    report = add(store, [media], experts(), fence)
    assert report.moved == [(str(path), str(media / "b.mp4"))]
    assert (fence.probed, fence.streamed, report.gone) == ([], [], [])
    assert store.clips() == clips
    assert names(f.path for f in store.files()) == ["b.mp4"]


def test_copies_are_worked_out_once(store, media):
    first = write_media(media / "a.mp4", seed=1)
    for n in range(6):
        shutil.copy(first, media / f"copy{n}.mp4")
    fence = FakeFence(delay=0.05)
    report = add(store, [media], experts(), fence, jobs=4)
    assert len(fence.streamed) == 1
    assert len(report.added) == 1
    assert len(report.duplicates) == 6
    assert len(store.videos()) == 1
    assert len(store.videos()[0].paths) == 7


def test_the_next_file_is_decoded_while_another_has_only_sound_left(store, media):
    """Twin: what one file after the other gives."""
    paths = [write_media(media / f"{n}.mp4", seed=n, seconds=20.0) for n in range(3)]
    started = threading.Semaphore(0)
    sizes = []

    class Patient(Talk):
        def extract(self, media):
            sizes.append(len(fence.streamed))
            if len(sizes) == 1:  # until the third file is decoded, though two are at once
                assert all(started.acquire(timeout=60) for _ in paths)
            return super().extract(media)

    fence = FakeFence(on_stream=lambda path: started.release())
    report = add(store, [media], [Colour(), Patient()], fence, jobs=2)
    assert len(report.added) == 3
    assert report.failed == []
    assert sizes[0] < 3
    with LibraryStore.create_or_open(media.parent / "twin") as twin:
        add(twin, [media], [Colour(), Talk()], FakeFence(), jobs=1)
        assert digest_of(twin) == digest_of(store)


def test_swapped_files_are_not_decoded_again(store, media):
    a, b = write_media(media / "a.mp4", seed=1), write_media(media / "b.mp4", seed=2)
    add(store, [media], experts(), FakeFence())
    a.rename(media / "c")
    b.rename(a)
    (media / "c").rename(b)
    fence = FakeFence()
    report = add(store, [media], experts(), fence)
    assert names(report.changed) == ["a.mp4", "b.mp4"]
    assert fence.streamed == []
    assert verify(store) == []


def test_touched_file_is_hashed_and_left(store, media):
    path = write_media(media / "a.mp4")
    add(store, [media], experts(), FakeFence())
    age(path)
    fence = FakeFence()
    report = add(store, [media], experts(), fence)
    assert (report.skipped, report.changed, fence.streamed) == (1, [], [])


def test_a_change_within_one_tick_is_seen(store, media, monkeypatch):
    monkeypatch.setattr("wordreel.ingest.plan.CLOCK_TICK_NS", 60 * 10**9)  # however busy the machine is
    path = write_media(media / "a.mp4", seed=1)
    status = path.stat()
    add(store, [media], experts(), FakeFence())
    content = store.files()[0].content
    path.write_bytes(path.read_bytes().replace(b'"seed": 1', b'"seed": 2'))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    monkeypatch.setattr(
        "wordreel.ingest.plan.FileStamp.of",
        classmethod(lambda cls, s: cls(s.st_size, status.st_mtime_ns, status.st_ctime_ns, s.st_ino)),
    )
    assert names(add(store, [media], experts(), FakeFence()).changed) == ["a.mp4"]
    assert store.files()[0].content != content


def test_gone_files_are_reported_and_kept_until_removed(store, media):
    path = write_media(media / "a.mp4")
    write_media(media / "b.mp4", seed=9)
    add(store, [media], experts(), FakeFence())
    path.unlink()
    report = add(store, [media], experts(), FakeFence())
    assert names(report.gone) == ["a.mp4"]
    assert len(store.files()) == 2
    assert [(p.kind, p.note) for p in verify(store)] == [("gone", True)]
    assert names(store.remove_missing()) == ["a.mp4"]
    assert verify(store) == []


def test_new_and_stale_experts_only(store, media):
    write_media(media / "a.mp4")
    add(store, [media], [Colour()], FakeFence())
    ids = [c.id for c in store.clips()]
    old = store.tracks()[0].hash
    colour, talk = Colour(), Talk()
    report = add(store, [media], [colour, talk], FakeFence())
    assert names(report.updated) == ["a.mp4"]
    assert (colour.calls, len(talk.calls)) == ([], 1)
    assert not set(ids) & {c.id for c in store.clips()}, (
        "an embedding made before must not be taken for one made after"
    )

    class Brighter(Colour):
        def extract(self, media):
            track = super().extract(media)
            return Track(track.values + 1, track.times)

    add(store, [media], [Brighter(version=2), Talk()], FakeFence())
    assert not store.track_files.path(old).exists()
    assert store.tracks()[0].hash != old
    assert verify(store) == []


def test_remove_file_and_folder(store, media):
    a = write_media(media / "x" / "a.mp4", seed=1)
    write_media(media / "x2" / "b.mp4", seed=2)
    write_media(media / "x" / "deep" / "copy.mp4", seed=2)
    add(store, [media], experts(), FakeFence())
    assert names(store.remove([a])) == ["a.mp4"]
    assert a.exists()
    assert names(store.remove([media / "x"])) == ["copy.mp4"]
    assert names(f.path for f in store.files()) == ["b.mp4"]
    assert store.stats().contents == 1
    assert verify(store) == []
    store.remove([media])
    assert (store.clips(), list(store.track_files.all()), lines_with(store, ["dogs"])) == ([], [], [])
    assert verify(store) == []


def test_words_can_be_searched(store, media):
    write_media(media / "a.mp4", seconds=200.0, seed=1)
    add(store, [media], experts(), FakeFence())
    content = store.files()[0].content
    hits = lines_with(store, ["dog"])
    assert [(h.content, h.expert, h.start) for h in sorted(hits, key=lambda h: h.start)] == [
        (content, "talk", 0.0),
        (content, "talk", 90.0),
        (content, "talk", 180.0),
    ]
    assert lines_with(store, ["cat"]) == []
    assert len(lines_with(store, ["cat", "number"])) == 3
    assert len(lines_with(store, ["dogs number"])) == 3
    assert lines_with(store, ["number dogs"]) == []
    assert len(lines_with(store, ["dogs"], limit=2)) == 2
    for odd in ('"', "NEAR(", "a AND", "*", "", "\x00", "\ud800", "-dog", "text:dog"):
        lines_with(store, [odd])
    assert [w.start for w in store.words(content, start=100.0, end=185.0)] == [90.0, 180.0]


def test_progress_ends_complete(store, media):
    for i in range(4):
        write_media(media / f"{i}.mp4", seconds=130.0, seed=i)
    seen = []
    add(store, [media], experts(), FakeFence(), on_progress=seen.append)
    assert seen[-1].done == seen[-1].total == 4
    assert seen[-1].bytes_done == seen[-1].bytes_total
    assert seen[-1].media_seconds == 520.0
    assert seen[-1].seconds_left == 0.0
    assert [p.done for p in seen] == sorted(p.done for p in seen)
    assert any(0 < p.bytes_done < p.bytes_total and p.current for p in seen)


def test_same_digest_whatever_the_jobs_and_order(tmp_path, media):
    for i in range(5):
        write_media(media / f"{i}.mp4", seconds=30.0 + 40 * i, seed=i % 3)
    digests = set()
    for n, (jobs, paths) in enumerate(
        [(1, [media]), (4, [media]), (2, sorted(media.iterdir(), reverse=True))]
    ):
        with LibraryStore.create_or_open(tmp_path / f"lib{n}") as store:
            add(store, paths, experts(), FakeFence(), jobs=jobs)
            digests.add(digest_of(store))
    assert len(digests) == 1


def test_dates_of_names_and_of_metadata(store, media):
    names = ("VID-20190714-WA0003.mp4", "plain.mp4")
    for seed, name in enumerate(names):
        age(write_media(media / name, seconds=5.0, seed=seed))
    add(store, [media], experts(), FakeFence())
    assert [(file.captured[:10], file.captured_from) for file in store.files()] == [
        ("2019-07-14", "file name"),
        ("2001-09-09", "file time"),
    ]
    (media / "plain.mp4").rename(media / "IMG_20200102_030405.mp4")
    add(store, [media], experts(), FakeFence())
    assert store.file(media / "IMG_20200102_030405.mp4").captured == "2020-01-02T03:04:05"


def test_metadata_of_earlier_libraries_are_read_once(store, media):
    write_media(media / "film.mp4", seconds=5.0)
    add(store, [media], experts(), FakeFence())
    clips = store.clips()
    with store.writing():
        store.catalogue.run("UPDATE contents SET recorded = NULL")
    dated = DatedFence()
    assert add(store, [media], experts(), dated).skipped == 1
    assert (dated.streamed, store.clips()) == ([], clips)
    assert store.files()[0].captured == "2019-07-14T15:30:12+02:00"
    assert store.files()[0].captured_from == "metadata"
    again = DatedFence()
    assert add(store, [media], experts(), again).skipped == 1
    assert again.probed == []


class DatedFence(FakeFence):
    """A decoder that finds a date in every file."""

    def probe(self, path):
        return replace(super().probe(path), recorded="2019-07-14T15:30:12+02:00")
