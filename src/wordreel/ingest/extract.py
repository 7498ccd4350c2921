"""Read one file and run the experts on it in one decoding pass: what any process can do of an `add`.

An `Extractor` knows no catalogue. It writes tracks to the library's track store and returns what the one
writer has to record, so it may run in this process, in another or on another machine.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import numpy as np

from wordreel.catalogue.clips import SHOTS_EXPERT, cut_clips, shots_of
from wordreel.catalogue.records import FileStamp
from wordreel.catalogue.tracks import StagedTrack, TrackStore
from wordreel.errors import MediaError
from wordreel.experts.base import Expert
from wordreel.ingest.expert_runner import ExpertLane, ExpertRunner
from wordreel.media.types import AudioNeed, FrameNeed, MediaInfo, Need, Window
from wordreel.runtime.sessions import release_memory
from wordreel.types import Absent, Clip, Track, Words
from wordreel.util.degenerate import track_fault

CHUNK = 1 << 22
RELEASE = 60.0  # seconds of media after which freed memory goes back to the system, which takes 20 ms
WINDOW = 5.0  # seconds decoded at once: every expert of every file may hold three windows of large frames

OnPosition = Callable[[float], None]
"""Called with the seconds of media read so far; what it raises ends the reading."""


class MediaDecoder(Protocol):
    """The part of `wordreel.media.Fence` that the library uses."""

    def probe(self, path: Path) -> MediaInfo:
        """Return a file's kind, size and codecs."""

    def stream(self, path: Path, needs: Sequence[Need], window: float = WINDOW) -> Iterator[Window]:
        """Yield what is decoded, window by window."""


@dataclass(frozen=True)
class Extracted:
    """A track or Absent per expert, and where the media really ended (0 if nothing was decoded)."""

    outputs: dict[str, Track | Absent]
    end: float


def extract(
    decoder: MediaDecoder,
    path: Path,
    runner: ExpertRunner,
    names: Sequence[str],
    on_window: Callable[[Window], None],
    on_frames_done: Callable[[], None] = lambda: None,
) -> Extracted:
    """Decode once for any number of experts; experts with the same needs share the same frames.

    Every expert has a thread of its own: they work on one window while the next is decoded. Those that take
    sound, minutes at a time, are the last to end; `on_frames_done` is called when all others have.
    """
    cards = {name: runner.experts[name].card for name in names}
    needs: list[Need] = list(dict.fromkeys(card.need for card in cards.values()))
    lanes = {name: ExpertLane(runner, name) for name in names}
    end = 0.0
    try:
        if needs:
            with closing(closable(decoder.stream(path, needs, window=WINDOW))) as windows:
                for window in windows:
                    on_window(window)
                    end = max(end, window.end)
                    for name, lane in lanes.items():
                        part = window.parts[needs.index(cards[name].need)]
                        if part is not None:
                            lane.push(part, window.end)
        for lane in lanes.values():
            lane.flush()
        for name, lane in lanes.items():
            if not isinstance(cards[name].need, AudioNeed):
                lane.close()
                lane.check()
        on_frames_done()
    except BaseException:
        for lane in lanes.values():
            lane.cancel()
        raise
    finally:
        for lane in lanes.values():
            lane.close()
    for lane in lanes.values():
        lane.check()
    sound = {name for name in names if isinstance(cards[name].need, AudioNeed)}
    return Extracted({n: joined(lane.outputs, lane.has_stream, n in sound) for n, lane in lanes.items()}, end)


@dataclass(frozen=True)
class ExtractedFile:
    """The tracks and clips of a file that is in no library; its clips have an empty content hash."""

    path: Path
    info: MediaInfo
    tracks: Mapping[str, Track]
    clips: tuple[Clip, ...]


def extract_file(
    path: Path,
    experts: Sequence[Expert],
    decoder: MediaDecoder,
    on_window: Callable[[Window, float], None] | None = None,
) -> ExtractedFile:
    """Extract the tracks and clips of a file as `add` would, without adding it.

    Args:
        path: The file.
        experts: Loaded experts to run.
        decoder: Decodes the file, usually a `wordreel.media.Fence`.
        on_window: Called with each decoded window and the file's duration.

    Raises:
        MediaError: The file cannot be decoded, or an expert fails on it.
    """
    try:
        info = decoder.probe(path)

        def report(window: Window) -> None:
            if on_window:
                on_window(window, info.duration)

        extracted = extract(decoder, path, ExpertRunner(experts), [e.card.name for e in experts], report)
    except MediaError as error:
        raise type(error)(f"{path}: {error.message}", error.next_step) from error
    if info.kind != "image" and extracted.end > 0:
        info = replace(info, duration=extracted.end)  # the header's duration may be wrong
    tracks = {name: output for name, output in extracted.outputs.items() if isinstance(output, Track)}
    clips = cut_clips(info, shots_of(tracks.get(SHOTS_EXPERT), info.duration))
    return ExtractedFile(path, info, tracks, tuple(Clip("", c.start, c.end, c.whole) for c in clips))


def content_hash(path: Path, check_stop: Callable[[], None] = lambda: None) -> str:
    """Return the hash that identifies a file's bytes in a library; empty for anything but a regular file.

    `check_stop` raises to end it.
    """
    digest = hashlib.sha256()
    # O_NONBLOCK: opening a pipe must not wait for its other end.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    with os.fdopen(handle, "rb", buffering=0) as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return ""
        while block := file.read(CHUNK):
            check_stop()
            digest.update(block)
    return digest.hexdigest()


def closable(windows: Iterator[Window]) -> Generator[Window, None, None]:
    """Return a generator even if the decoder gives a plain iterator, so that it can be closed early."""
    yield from windows


def joined(outputs: list[Track | Absent], has_stream: bool, sound: bool) -> Track | Absent:
    """Concatenate the tracks of all chunks; absent only if every chunk was."""
    tracks = [output for output in outputs if isinstance(output, Track)]
    if tracks:
        return Track(
            np.concatenate([track.values for track in tracks]),
            np.concatenate([track.times for track in tracks]),
            tuple(_clean(words) for track in tracks for words in track.words),
        )
    if outputs:
        return Absent("; ".join(dict.fromkeys(o.reason for o in outputs if isinstance(o, Absent))))
    what = "sound" if sound else "picture"
    return Absent(f"no {what} could be decoded" if has_stream else f"no {what} stream")


def _clean(words: Words) -> Words:
    """Words that SQLite can store: valid Unicode without NUL."""
    text = words.text.replace("\x00", " ").encode("utf-8", "replace").decode()
    return words if text == words.text else Words(text, words.start, words.end, words.score)


@dataclass(frozen=True)
class ExpertResult:
    """One expert's output on a file: a staged track with its catalogue entry, or why there is none."""

    expert: str
    fingerprint: str
    staged: StagedTrack | None
    reason: str = ""
    rows: int = 0
    dim: int = 0
    words: tuple[Words, ...] = ()
    fault: str = ""  # why the track cannot be right, if that shows

    @classmethod
    def of(
        cls,
        expert: str,
        fingerprint: str,
        output: Track | Absent,
        staged: StagedTrack | None,
        fault: str = "",
    ) -> ExpertResult:
        """Describe what an expert returned."""
        if isinstance(output, Absent):
            return cls(expert, fingerprint, None, output.reason)
        return cls(expert, fingerprint, staged, "", len(output), output.dim, output.words, fault)


@dataclass(frozen=True)
class FileTracks:
    """What the experts found in a file; `end` is where its media really ended (0 if nothing was decoded).

    `shots` is the output of the shots expert if it was among those that ran: clips are cut from it. A quick
    look has no shots, but `key_frames`: clips are the stretches between those times.
    """

    results: tuple[ExpertResult, ...]
    shots: Track | Absent | None
    end: float
    key_frames: tuple[float, ...] = ()


class Extractor(Protocol):
    """Where files are read and experts run. Threads share it."""

    @property
    def fingerprints(self) -> Mapping[str, str]:
        """Of every expert, by name."""
        ...

    def probe(self, path: Path) -> MediaInfo:
        """Return a file's kind, size and codecs."""

    def hash(self, path: Path, check_stop: Callable[[], None]) -> str:
        """Return the hash of a file's bytes; `check_stop` raises to end it."""
        ...

    def extract(
        self,
        path: Path,
        stamp: FileStamp,
        names: Sequence[str],
        on_position: OnPosition,
        on_frames_done: Callable[[], None] = ...,
    ) -> FileTracks:
        """Run these experts; a MediaError if the file no longer has this stamp.

        `on_frames_done` may be called when there is only sound left to work on.
        """
        ...


class LocalExtractor:
    """Reads files and runs experts in this process."""

    def __init__(self, experts: Sequence[Expert], decoder: MediaDecoder, tracks: TrackStore) -> None:
        self.fingerprints = {expert.card.name: expert.fingerprint for expert in experts}
        self._runner = ExpertRunner(experts)
        self._decoder = decoder
        self._tracks = tracks
        self._since_release = 0.0  # seconds of media

    def probe(self, path: Path) -> MediaInfo:
        """Return a file's kind, size and codecs."""
        return self._decoder.probe(path)

    def hash(self, path: Path, check_stop: Callable[[], None] = lambda: None) -> str:
        """Return the hash of a file's bytes; `check_stop` raises to end it."""
        if not (digest := content_hash(path, check_stop)):
            raise MediaError("not a regular file")
        return digest

    def extract(
        self,
        path: Path,
        stamp: FileStamp,
        names: Sequence[str],
        on_position: OnPosition,
        on_frames_done: Callable[[], None] = lambda: None,
    ) -> FileTracks:
        """Decode a file once, and run the experts on it."""

        def on_window(window: Window) -> None:
            on_position(window.start)
            self._release_after(window.end - window.start)

        extracted = extract(self._decoder, path, self._runner, names, on_window, on_frames_done)
        if FileStamp.of(path.stat()) != stamp:
            raise MediaError("changed while it was being read; add it again")
        on_position(extracted.end)
        shots = len(shots_of(extracted.outputs.get(SHOTS_EXPERT), extracted.end) or ())
        results = tuple(
            ExpertResult.of(
                name, self.fingerprints[name], output, self._stage(output), self._fault(name, output, shots)
            )
            for name, output in extracted.outputs.items()
        )
        return FileTracks(results, extracted.outputs.get(SHOTS_EXPERT), extracted.end)

    def _release_after(self, seconds: float) -> None:
        """Count media; now and then release what the threads of experts leave behind, up to a gigabyte."""
        self._since_release += seconds
        if self._since_release > RELEASE:
            self._since_release = 0.0
            release_memory()

    def _fault(self, name: str, output: Track | Absent, shots: int) -> str:
        if isinstance(output, Absent):
            return ""
        need = self._runner.experts[name].card.need
        return track_fault(output, isinstance(need, FrameNeed), shots)

    def _stage(self, output: Track | Absent) -> StagedTrack | None:
        return self._tracks.stage(output) if isinstance(output, Track) else None
