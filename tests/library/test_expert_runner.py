"""Lanes against their obvious twin, one expert after the other; side by side; and what ends them."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from tests.library.fakes import Broken, Colour, FakeFence, Talk, write_media

from wordreel.experts.base import Expert, IncrementalExpert
from wordreel.library import LibraryStore, expert_runner, extractor
from wordreel.library.chunks import FrameChunker, SoundChunker
from wordreel.library.expert_runner import ExpertFailed, ExpertRunner
from wordreel.library.extract import Extracted, extract
from wordreel.library.scan import FileStamp
from wordreel.media.types import AudioNeed, Frames, Sound
from wordreel.types import Absent, Track


class Count(IncrementalExpert):
    """A row per chunk: how many frames it had, and in how many pieces."""

    def __init__(self, span: float = 40.0) -> None:
        plain = Colour("count", span=span)
        self.card, self.fingerprint, self.labels = plain.card, plain.fingerprint, plain.labels

    def begin(self) -> Count.Chunk:
        return Count.Chunk()

    class Chunk:
        def __init__(self) -> None:
            self.frames: list[Frames] = []

        def push(self, media: Frames) -> None:
            self.frames.append(media)

        def finish(self) -> Track | Absent:
            times = np.concatenate([frames.times for frames in self.frames])
            total = sum(int(frames.images.sum()) for frames in self.frames)
            return Track(
                np.array([[len(times), total, times[0], times[-1]]], np.float32),
                np.array([[times[0], times[-1] + 1.0]]),
            )


def in_turn(path: Path, expert: Expert) -> list[Track | Absent]:
    """Decode all, cut it into chunks, and give them to one expert in this thread."""
    (window,) = FakeFence().stream(str(path), [expert.card.need], window=1e6)
    (part,) = window.parts
    chunker = SoundChunker if isinstance(expert.card.need, AudioNeed) else FrameChunker
    chunks = chunker(expert.card.span)
    pieces = [*chunks.push(part, window.end), *chunks.flush()]  # type: ignore[arg-type]
    return [expert.extract(piece.media) for piece in pieces]  # type: ignore[arg-type]


def run(path: Path, experts: list[Expert]) -> Extracted:
    names = [expert.card.name for expert in experts]
    return extract(FakeFence(), path, ExpertRunner(experts), names, lambda window: None)


@pytest.mark.parametrize("seconds", [3.0, 40.5, 61.0, 200.0])
def test_lanes_give_what_one_expert_after_the_other_gives(tmp_path: Path, seconds: float) -> None:
    path = write_media(tmp_path / "a.mp4", seconds=seconds, seed=3)
    experts: list[Expert] = [Colour(rate=2.0), Colour("slow", rate=0.2, span=33.0), Talk(), Count()]
    found = run(path, experts)
    assert found.end == seconds
    for expert in experts:
        tracks = [one for one in in_turn(path, expert) if isinstance(one, Track)]
        output = found.outputs[expert.card.name]
        assert isinstance(output, Track)
        np.testing.assert_array_equal(output.values, np.concatenate([t.values for t in tracks]))
        np.testing.assert_array_equal(output.times, np.concatenate([t.times for t in tracks]))
        assert output.words == tuple(word for t in tracks for word in t.words)


def test_experts_work_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expert_runner, "cores", lambda: 2)
    both = threading.Barrier(2)

    class Meeting(Colour):
        def extract(self, media: Frames | Sound) -> Track | Absent:
            both.wait(60)  # breaks, and fails the file, unless the other expert is at work as well
            return super().extract(media)

    path = write_media(tmp_path / "a.mp4", seconds=10.0)
    found = run(path, [Meeting("one"), Meeting("other")])
    assert all(isinstance(output, Track) for output in found.outputs.values())


def test_a_failing_expert_fails_the_file_and_leaves_no_thread(tmp_path: Path) -> None:
    path = write_media(tmp_path / "a.mp4", seconds=300.0)
    before = set(threading.enumerate())
    with pytest.raises(ExpertFailed, match="expert broken: too dark"):
        run(path, [Colour(), Broken(lambda: ValueError("too\ndark")), Talk()])
    assert set(threading.enumerate()) <= before


def test_an_interrupt_leaves_no_thread(tmp_path: Path) -> None:
    path = write_media(tmp_path / "a.mp4", seconds=300.0)
    before = set(threading.enumerate())

    def stop(window: object) -> None:
        if threading.active_count() > len(before):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        extract(FakeFence(), path, ExpertRunner([Colour(span=15.0)]), ["colour"], stop)
    assert set(threading.enumerate()) <= before


class CountedPieces(threading.Semaphore):
    """A semaphore that knows how many of its places were ever taken at once."""

    def __init__(self, value: int) -> None:
        super().__init__(value)
        self.count, self.taken, self.most = threading.Lock(), 0, 0

    def acquire(self, *arguments: object) -> bool:  # type: ignore[override]
        super().acquire()
        with self.count:
            self.taken += 1
            self.most = max(self.most, self.taken)
        return True

    def release(self, n: int = 1) -> None:
        with self.count:
            self.taken -= 1
        super().release(n)


@pytest.mark.parametrize("length", [80.0, 225.0])
def test_files_share_the_places_of_long_sound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, length: float
) -> None:
    monkeypatch.setattr(expert_runner, "LONG_SOUND", 30.0)
    talk = Talk(span=90.0)
    runner = ExpertRunner([talk])
    pieces = runner.long_pieces = CountedPieces(2)  # type: ignore[assignment]
    paths = [write_media(tmp_path / f"{n}.mp4", seconds=length, seed=n) for n in range(4)]

    def extract_one(path: Path) -> Extracted:
        return extract(FakeFence(), path, runner, ["talk"], lambda window: None)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(extract_one, paths))
    assert pieces.taken == 0
    assert 1 <= pieces.most <= 2
    for path, extracted in zip(paths, found, strict=True):
        wanted = [row for track in in_turn(path, talk) if isinstance(track, Track) for row in track.values]
        track = extracted.outputs["talk"]
        assert isinstance(track, Track)
        np.testing.assert_array_equal(track.values, wanted)


def test_a_failure_frees_its_place_of_long_sound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expert_runner, "LONG_SOUND", 30.0)
    runner = ExpertRunner([Talk(span=1000.0), Broken(lambda: ValueError("too dark"))])
    pieces = runner.long_pieces = CountedPieces(2)  # type: ignore[assignment]
    path = write_media(tmp_path / "a.mp4", seconds=300.0)
    with pytest.raises(ExpertFailed, match="too dark"):
        extract(FakeFence(), path, runner, list(runner.experts), lambda window: None)
    assert (pieces.taken, pieces.most) == (0, 1)


def test_memory_is_released_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes longer than some short files do."""
    released: list[int] = []
    monkeypatch.setattr(extractor, "release_memory", lambda: released.append(1))
    with LibraryStore.create_or_open(tmp_path / "library") as store:
        local = extractor.LocalExtractor([Talk()], FakeFence(), store.track_files)
        for number, (seconds, count) in enumerate([(40.0, 0), (40.0, 1), (40.0, 1), (300.0, 2)]):
            path = write_media(tmp_path / f"{number}.mp4", seconds=seconds, seed=number)
            local.extract(path, FileStamp.of(path.stat()), ["talk"], lambda position: None)
            assert len(released) == count
