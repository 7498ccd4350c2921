"""Read one file and run the experts on it: the part of an `add` that any process can do.

An `Extractor` knows no catalogue. It writes tracks to the library's track store and returns what the one
writer has to record, so it may run in this process, in another or on another machine.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from wordreel.catalogue.clips import SHOTS_EXPERT, shots_of
from wordreel.catalogue.tracks.track_files import StagedTrack
from wordreel.catalogue.tracks.track_store import TrackStore
from wordreel.errors import MediaError
from wordreel.experts.base import Expert
from wordreel.ingest.expert_runner import ExpertRunner
from wordreel.ingest.extract import MediaDecoder, extract
from wordreel.ingest.scan import FileStamp
from wordreel.media.types import FrameNeed, MediaInfo, Window
from wordreel.runtime.sessions import release_memory
from wordreel.types import Absent, Track, Words
from wordreel.util.degenerate import track_fault

CHUNK = 1 << 22
RELEASE = 60.0  # seconds of media after which freed memory goes back to the system, which takes 20 ms

OnPosition = Callable[[float], None]
"""Called with the seconds of media read so far; what it raises ends the reading."""


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

    def probe(self, path: Path) -> MediaInfo: ...

    def hash(self, path: Path, check_stop: Callable[[], None]) -> str:
        """The hash of a file's bytes; `check_stop` raises to end it."""
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
        return self._decoder.probe(path)

    def hash(self, path: Path, check_stop: Callable[[], None]) -> str:
        digest = hashlib.sha256()
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        with os.fdopen(handle, "rb", buffering=0) as source:
            while block := source.read(CHUNK):
                check_stop()
                digest.update(block)
        return digest.hexdigest()

    def extract(
        self,
        path: Path,
        stamp: FileStamp,
        names: Sequence[str],
        on_position: OnPosition,
        on_frames_done: Callable[[], None] = lambda: None,
    ) -> FileTracks:
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
