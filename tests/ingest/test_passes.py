"""After a quick look and the thorough pass a library is what the thorough pass alone makes of it."""

import os
import random
import shutil
import signal
import time

import numpy as np
import pytest
from tests.digest import digest_of
from tests.fakes import Broken, Colour, FakeFence, Shots, Talk, experts, write_media
from tests.media_files import video

from wordreel.catalogue.passes import (
    is_quick,
    is_quick_track,
    latest_returned,
    note_returned,
    quick_contents,
    quick_fingerprint,
    waiting_files,
)
from wordreel.catalogue.store import LibraryStore
from wordreel.embed import embedding_cache as embeddings
from wordreel.embed.embedding_cache import EmbeddingCache
from wordreel.ingest.add import add, add_with
from wordreel.ingest.add_report import merge_passes
from wordreel.ingest.extract import LocalExtractor
from wordreel.ingest.quick import Allowance, QuickExperts, QuickExtractor, scaled
from wordreel.ingest.tasks import AddOptions
from wordreel.maintain.backup import backup as back_up
from wordreel.maintain.repair import repair
from wordreel.maintain.verify import verify
from wordreel.media import Fence
from wordreel.media.types import Frames
from wordreel.types import Absent, Track


def look(store, paths, decoder=None, speech=False, on_progress=None, **more):
    """The quick pass: colours of key frames, sound of files that have no picture."""
    quick = QuickExperts([Colour()], None, [Talk()], Talk if speech else None)
    extractor = QuickExtractor(quick, decoder or FakeFence(), store.track_files)
    return add_with(extractor, store, paths, 2, on_progress, AddOptions(analysis="quick", **more))


def finish(store, decoder=None, on_progress=None, **more):
    """The thorough pass over what waits for it."""
    paths = [file.path for file in waiting_files(store.catalogue)]
    extractor = LocalExtractor(experts(), decoder or FakeFence(), store.track_files)
    return add_with(extractor, store, paths, 2, on_progress, AddOptions(only_waiting=True, **more))


def fill(media):
    write_media(media / "long.mp4", seconds=95.0, seed=1)
    write_media(media / "short.mp4", seconds=12.0, seed=2, sound=False)
    write_media(media / "song.mp3", seconds=33.0, seed=3, kind="audio")
    write_media(media / "picture.png", seed=4, kind="image")
    shutil.copy(media / "long.mp4", media / "copy.mp4")


def state(store):
    """All but ids: what each table says, row by row."""
    return digest_of(store), [
        (c.start, c.end, c.whole, c.shot) for v in store.videos() for c in store.clips(v.content)
    ]


@pytest.mark.parametrize("speech", [False, True])
def test_thorough_after_quick_is_thorough_alone(tmp_path, media, store, speech):
    fill(media)
    report = look(store, [media], speech=speech)
    assert (len(report.added), len(report.duplicates), report.failed) == (4, 1, [])
    assert {v.analysis for v in store.videos()} == {"quick"}
    assert verify(store) == []
    finish(store)
    assert {v.analysis for v in store.videos()} == {"thorough"}
    assert verify(store) == []
    with LibraryStore.create_or_open(tmp_path / "alone") as alone:
        add(alone, [media], experts(), FakeFence())
        assert state(store) == state(alone)
    assert not any(is_quick_track(row.fingerprint) for row in store.tracks())


class Embedded:
    """Embeddings of a model that gives every clip the same row, and what a reader finds at this moment."""

    def __init__(self, store):
        self.store = store
        for known in store.videos():
            self.embed(known.content)

    def cache(self, store=None):
        return EmbeddingCache(store or self.store, "model", ["colour"], 2)

    def embed(self, content):
        ids = [clip.id for clip in self.store.clips(content)]
        self.cache().append(ids, np.ones((len(ids), 1, 2), np.float32), np.ones((len(ids), 1), bool))

    def found(self):
        with LibraryStore.open(self.store.path) as reader:
            _, columns = self.cache(reader).open()
            return {columns.content(number) for number in columns.video[columns.live].tolist()}


def test_a_video_is_found_at_every_moment_of_the_thorough_pass(media, store):
    fill(media)
    look(store, [media])
    model = Embedded(store)
    everything = {known.content for known in store.videos()}
    before, seen = store.clip_ids(), [model.found()]

    def embed(content):
        model.embed(content)
        seen.append(model.found())  # the new rows are there, their clips are not yet

    finish(store, embed=embed, on_progress=lambda now: seen.append(model.found()))
    assert seen == [everything] * len(seen)
    assert len(seen) > len(everything)
    assert not set(before) & set(store.clip_ids())
    assert model.cache().missing() == []
    assert sorted(model.cache().load().ids.tolist()) == store.clip_ids()


def test_embeddings_of_clips_that_were_never_recorded_belong_to_no_others(media, store):
    fill(media)
    look(store, [media])
    model = Embedded(store)
    everything, before = model.found(), store.clip_ids()

    def fail(content):
        model.embed(content)
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        finish(store, embed=fail)
    lost = set(model.cache().raw().ids.tolist()) - set(before)
    assert lost
    assert store.clip_ids() == before
    assert model.found() == everything
    finish(store)  # nothing embeds them: a later call does
    assert not lost & set(store.clip_ids())
    assert model.cache().missing() == store.clip_ids()


def test_rows_appended_while_a_reader_opens_are_seen_with_their_clips(media, store, monkeypatch):
    fill(media)
    look(store, [media])
    model = Embedded(store)
    everything = model.found()
    plain, thorough = embeddings.open_gallery, iter([True])

    def late(folder, now):
        if next(thorough, False):  # after the manifest was read, and before the catalogue is
            finish(store, embed=model.embed)
        return plain(folder, now)

    monkeypatch.setattr(embeddings, "open_gallery", late)
    assert model.found() == everything


def test_moments_are_the_stretches_between_key_frames(media, store):
    fill(media)
    look(store, [media])
    film = store.file(media / "long.mp4").content
    moments = [(c.start, c.end) for c in store.clips(film) if not c.whole]
    assert moments == [(t, min(t + 10.0, 95.0)) for t in np.arange(0.0, 95.0, 10.0).tolist()]
    track = store.track(film, "colour")
    assert [tuple(row) for row in track.times.tolist()] == moments
    assert store.tracks(film)[0].fingerprint == quick_fingerprint(Colour().fingerprint)
    assert store.present_tracks([film], ["colour"], {"colour": Colour().fingerprint})[0].keys() == {"colour"}
    assert store.present_tracks([film], ["colour"], {"colour": Colour(version=2).fingerprint}) == [{}]
    assert store.has_track_by("colour", Colour().fingerprint)


def test_pictures_and_sounds_get_thorough_tracks_at_once(media, store):
    fill(media)
    look(store, [media])
    for name, expert in (("picture.png", Colour()), ("song.mp3", Talk())):
        (row,) = store.tracks(store.file(media / name).content)
        assert (row.expert, row.fingerprint) == (expert.card.name, expert.fingerprint)
    fence = FakeFence()
    finish(store, fence)
    runs = [p for p in fence.streamed if p.endswith("picture.png")]
    assert len(runs) == 1  # for the other experts


def test_speech_of_short_sound_and_no_more_than_allowed(media, store, monkeypatch):
    monkeypatch.setattr("wordreel.ingest.quick.SPEECH_ALLOWANCE", 30.0)
    for name, seconds in (("a", 20.0), ("b", 9.0), ("c", 100.0)):
        write_media(media / f"{name}.mp4", seconds=seconds, seed=int(seconds))
    look(store, [media], speech=True)
    heard = {name: store.track(store.file(media / f"{name}.mp4").content, "talk") for name in "abc"}
    assert isinstance(heard["a"], Track)
    assert isinstance(heard["b"], Track)
    assert heard["c"] is None
    allowance = Allowance(1.0)
    assert [allowance.take(0.6), allowance.take(0.6), allowance.take(0.4)] == [True, False, True]


def test_known_contents_are_not_looked_at_again(media, store):
    fill(media)
    add(store, [media], experts(), FakeFence())
    (media / "long.mp4").rename(media / "moved.mp4")
    fence = FakeFence()
    report = look(store, [media], fence)
    assert (len(report.moved), report.skipped, fence.streamed) == (1, 4, [])
    assert quick_contents(store.catalogue) == frozenset()


def test_too_few_bytes_are_left_to_the_thorough_pass(media, store):
    fill(media)
    size = sum(path.stat().st_size for path in media.iterdir())
    assert look(store, [media], least_bytes=size + 1).added == []
    assert len(look(store, [media], least_bytes=size).added) == 4


def test_a_later_expert_does_not_make_a_quick_content_thorough(media, store):
    """As `wordreel use` does, which embeds frames of everything and leaves the clips as they are."""
    fill(media)
    look(store, [media])
    clips = store.clips()
    add(store, [media], [Colour("tower")], FakeFence(), keep_clips=True)
    assert store.clips() == clips
    assert {v.analysis for v in store.videos()} == {"quick"}


def test_what_the_thorough_pass_cannot_read_stays_found(media, store):
    fill(media)
    look(store, [media])
    paths = [file.path for file in waiting_files(store.catalogue)]
    failing = [*experts(), Broken(lambda: ValueError("no"))]
    extractor = LocalExtractor(failing, FakeFence(), store.track_files)
    report = add_with(extractor, store, paths, 2)
    assert len(report.failed) == 3  # the sound has no pictures
    assert len(quick_contents(store.catalogue)) == 3
    assert len(store.videos()) == 4
    assert waiting_files(store.catalogue) == []  # they failed: not again and again
    assert len(waiting_files(store.catalogue, retry_failed=True)) == 3
    assert look(store, [media]).still_failed != []


def test_what_searches_returned_comes_first_then_the_newest(media, store):
    for number in range(5):
        path = write_media(media / f"{number}.mp4", seconds=20.0 + number, seed=number)
        os.utime(path, ns=(number * 10**9, number * 10**9))
    look(store, [media])
    contents = {n: store.file(media / f"{n}.mp4").content for n in range(5)}
    note_returned(store, [contents[1]])
    note_returned(store, [contents[0], "unknown"])
    assert latest_returned(store.catalogue) == [contents[0], contents[1]]
    fence = FakeFence(on_stream=lambda path: path.endswith("0.mp4") and note_returned(store, [contents[2]]))
    paths = [file.path for file in waiting_files(store.catalogue)]
    add_with(LocalExtractor(experts(), fence, store.track_files), store, paths, 1)
    assert [path[-5:] for path in fence.streamed] == ["0.mp4", "2.mp4", "1.mp4", "4.mp4", "3.mp4"]
    assert latest_returned(store.catalogue) == []


def test_clips_of_a_quick_look_are_repaired_from_its_key_frames(media, store):
    fill(media)
    look(store, [media])
    film = store.file(media / "long.mp4").content
    before = [(c.start, c.end, c.whole, c.shot) for c in store.clips(film)]
    store.catalogue.run("DELETE FROM clips WHERE content = ? AND start = 20", film)
    assert [p.kind for p in verify(store)] == ["clips"]
    repair(store, verify(store))
    assert [(c.start, c.end, c.whole, c.shot) for c in store.clips(film)] == before


def test_backups_know_the_pass(media, store, tmp_path):
    fill(media)
    look(store, [media])
    back_up(store, tmp_path / "backup")
    with LibraryStore.open(tmp_path / "backup") as copy:
        assert quick_contents(copy.catalogue) == quick_contents(store.catalogue) != frozenset()
        assert digest_of(copy) == digest_of(store)


def test_one_report_of_two_passes(media, store):
    fill(media)
    add(store, [media / "short.mp4"], experts(), FakeFence())
    write_media(media / "bad.mp4", bad="broken")
    (media / "notes.txt").write_text("no media")
    quick = look(store, [media])
    thorough = add_with(LocalExtractor(experts(), FakeFence(), store.track_files), store, [media], 2)
    report = merge_passes(quick, thorough)
    assert sorted(p.rpartition("/")[2] for p in report.added + report.duplicates) == [
        "copy.mp4", "long.mp4", "picture.png", "song.mp3",
    ]  # fmt: skip
    assert (report.updated, report.skipped, report.ignored) == ([], 1, 1)
    assert [path.rpartition("/")[2] for path, _ in report.failed] == ["bad.mp4"]
    assert report.quick.files == 3
    again = merge_passes(look(store, [media]), add_with(
        LocalExtractor(experts(), FakeFence(), store.track_files), store, [media], 2))  # fmt: skip
    assert (again.added, again.updated, again.skipped, len(again.still_failed)) == ([], [], 5, 1)


def test_frames_are_scaled_by_area():
    images = np.random.default_rng(0).integers(0, 255, (2, 8, 12, 3), np.uint8)
    small = scaled(Frames(images, np.array([0.0, 4.0]), 4.0), 4)
    assert small.images.shape == (2, 4, 6, 3)
    means = images.reshape(2, 4, 2, 6, 2, 3).mean(axis=(2, 4))
    assert np.abs(small.images - means).max() <= 0.5
    assert scaled(small, 4) is small


def build(library, media, decoder):
    with LibraryStore.create_or_open(library) as store:
        look(store, [media], decoder)
        extractor = LocalExtractor(experts(), decoder, store.track_files)
        add_with(extractor, store, [media], 2)


def test_killed_in_either_pass_the_same_calls_go_on(tmp_path, media):
    fill(media)
    for number in range(6):
        write_media(media / f"{number}.mp4", seconds=20.0 + 40 * number, seed=number)
    rng = random.Random(0)
    began = time.monotonic()
    build(tmp_path / "unkilled", media, FakeFence(delay=0.002))
    usual = time.monotonic() - began
    for _ in range(6):
        child = os.fork()
        if child == 0:
            try:
                build(tmp_path / "killed", media, FakeFence(delay=0.002))
            finally:
                os._exit(0)
        time.sleep(rng.uniform(0.0, usual))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        if (tmp_path / "killed" / "catalogue.sqlite").exists():
            with LibraryStore.create_or_open(tmp_path / "killed") as store:
                left = {"orphan", "stray", "unreferenced", "unfinished"}
                assert {p.kind for p in verify(store) if not p.note} <= left
    build(tmp_path / "killed", media, FakeFence())
    with LibraryStore.open(tmp_path / "killed") as one, LibraryStore.open(tmp_path / "unkilled") as other:
        assert verify(one) == []
        assert state(one) == state(other)
        assert quick_contents(one.catalogue) == frozenset()


def test_real_files_through_the_fence(tmp_path, media, store):
    video(media / "film.mp4", seconds=14.0)
    quick = QuickExperts([Colour()], None, [], None)
    with Fence() as fence:
        extractor = QuickExtractor(quick, fence, store.track_files)
        add_with(extractor, store, [media], 2, options=AddOptions(analysis="quick"))
        film = store.videos()[0].content
        assert is_quick(store.catalogue, film)
        track = store.track(film, "colour")
        assert isinstance(track, Track)
        assert track.times[0, 0] == 0.0
        assert np.diff(track.times[:, 0]).min() >= 4.0
        thorough = [Colour(rate=5.0), Talk(rate=16000), Shots()]
        add_with(LocalExtractor(thorough, fence, store.track_files), store, [media], 2)
        with LibraryStore.create_or_open(tmp_path / "alone") as alone:
            add(alone, [media], [Colour(rate=5.0), Talk(rate=16000), Shots()], fence)
            assert state(store) == state(alone)
    assert isinstance(store.track(film, "talk"), Track | Absent)
