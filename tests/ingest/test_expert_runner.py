"""Lanes against their obvious twin, one expert after the other; side by side; and what ends them."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from tests.fakes import Broken, Colour, FakeFence, Talk, write_media

from wordreel.catalogue.records import FileStamp
from wordreel.catalogue.store import LibraryStore
from wordreel.experts.base import Expert, IncrementalExpert
from wordreel.ingest import expert_runner
from wordreel.ingest.expert_runner import ExpertFailed, ExpertRunner, FrameChunker, SoundChunker
from wordreel.ingest.extract import Extracted, LocalExtractor, extract
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
    (window,) = FakeFence().stream(path, [expert.card.need], window=1e6)
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


def test_frames_are_done_before_sound_is(tmp_path: Path) -> None:
    done = threading.Event()

    class Slow(Talk):
        def extract(self, media: Frames | Sound) -> Track | Absent:
            assert done.wait(60)  # fails the file unless the frames are done first
            return super().extract(media)

    path = write_media(tmp_path / "a.mp4", seconds=10.0)
    experts: list[Expert] = [Slow(), Colour()]
    lanes: list[str] = []

    def on_frames_done() -> None:
        lanes.extend(thread.name for thread in threading.enumerate() if thread.name.startswith("expert-"))
        done.set()

    runner = ExpertRunner(experts)
    found = extract(FakeFence(), path, runner, ["talk", "colour"], lambda window: None, on_frames_done)
    assert lanes == ["expert-talk"]
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


def test_memory_is_released_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once a minute of media, within long files too: it takes longer than some short files do."""
    released: list[int] = []
    monkeypatch.setattr("wordreel.ingest.extract.release_memory", lambda: released.append(1))
    with LibraryStore.create_or_open(tmp_path / "library") as store:
        local = LocalExtractor([Talk()], FakeFence(), store.track_files)
        for number, (seconds, count) in enumerate([(40.0, 0), (40.0, 1), (40.0, 1), (300.0, 6)]):
            path = write_media(tmp_path / f"{number}.mp4", seconds=seconds, seed=number)
            local.extract(path, FileStamp.of(path.stat()), ["talk"], lambda position: None)
            assert len(released) == count
