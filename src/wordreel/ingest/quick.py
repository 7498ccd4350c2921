"""The quick pass over a file: what its key frames look like and what is written on them.

Of a picture all frames are key frames, and of a sound there are none: those get the thorough experts at once
that are fast enough. Speech takes longer than all else, so only short sound is transcribed, and little of it
in one run; the rest waits for the thorough pass.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np

from wordreel.catalogue.passes import quick_fingerprint
from wordreel.catalogue.records import FileStamp
from wordreel.catalogue.tracks import TrackStore
from wordreel.errors import MediaError
from wordreel.experts.base import Expert
from wordreel.ingest.expert_runner import ExpertRunner
from wordreel.ingest.extract import (
    ExpertResult,
    FileTracks,
    LocalExtractor,
    MediaDecoder,
    OnPosition,
    closable,
    joined,
)
from wordreel.media.types import FrameNeed, Frames, MediaInfo, Window
from wordreel.types import Absent, Track

NEED = FrameNeed(rate=0.25, short_side=480)  # a key frame every four seconds at most
TEXT_EVERY = 16.0  # seconds between two key frames that are searched for text, which is most of the cost
SPEECH_ALLOWANCE = 30.0  # seconds of sound that one run transcribes


class QuickDecoder(MediaDecoder, Protocol):
    """The part of `wordreel.media.Fence` that the quick pass uses."""

    def quick_look(self, path: Path, need: FrameNeed, window: float = 60.0) -> Iterator[Window]:
        """Yield the key frames of a file, window by window."""


@dataclass
class Allowance:
    """Seconds that a run may spend on something. Threads share it."""

    left: float
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, seconds: float) -> bool:
        """Return whether so many seconds are left, and use them."""
        with self._lock:
            if seconds > self.left:
                return False
            self.left -= seconds
            return True


@dataclass(frozen=True)
class QuickExperts:
    """What the quick pass runs; `load_speech` is called if some sound is short enough."""

    frames: Sequence[Expert]  # on key frames, a row for each
    text: Expert | None = None  # on key frames
    sound: Sequence[Expert] = ()  # on files that are only sound, all of it
    load_speech: Callable[[], Expert] | None = None


class QuickExtractor:
    """An `Extractor` that looks at key frames."""

    def __init__(self, experts: QuickExperts, decoder: QuickDecoder, tracks: TrackStore) -> None:
        self._experts, self._decoder, self._tracks = experts, decoder, tracks
        self._whole = LocalExtractor([*experts.frames, *experts.sound], decoder, tracks)
        text = [experts.text] if experts.text else []
        self._runner = ExpertRunner([*experts.frames, *text])
        self._speech_allowance = Allowance(SPEECH_ALLOWANCE if experts.load_speech else 0.0)
        self._loading = threading.Lock()

    @property
    def fingerprints(self) -> Mapping[str, str]:
        """Return the fingerprints of the experts' quick tracks."""
        return {e.card.name: quick_fingerprint(e.fingerprint) for e in self._runner.experts.values()}

    def probe(self, path: Path) -> MediaInfo:
        """Return a file's kind, size and codecs."""
        return self._decoder.probe(path)

    def hash(self, path: Path, check_stop: Callable[[], None]) -> str:
        """Return the hash of a file's bytes."""
        return self._whole.hash(path, check_stop)

    def extract(
        self,
        path: Path,
        stamp: FileStamp,
        names: Sequence[str],
        on_position: OnPosition,
        on_frames_done: Callable[[], None] = lambda: None,
    ) -> FileTracks:
        """Look at a file; of a content that is known (no `names`) nothing is needed."""
        if not names:
            return FileTracks((), None, 0.0)
        look = _Look(self._experts, self._runner)
        with closing(closable(self._decoder.quick_look(path, NEED))) as windows:
            for window in windows:
                on_position(window.start)
                look.take(window)
        if FileStamp.of(path.stat()) != stamp:
            raise MediaError("changed while it was being read; add it again")
        on_position(look.end)
        if look.still:
            pictures = self._whole.extract(path, stamp, [e.card.name for e in self._experts.frames], _ignore)
            results = [*pictures.results, *self._results(look.texts())]
        elif look.starts:
            results = [*self._results(look.rows()), *self._results(look.texts())]
        else:
            results = list(
                self._whole.extract(path, stamp, [e.card.name for e in self._experts.sound], _ignore).results
            )
        if not look.still and self._speech_allowance.take(look.end):
            results += self._speech.extract(path, stamp, list(self._speech.fingerprints), _ignore).results
        return FileTracks(tuple(results), None, look.end, tuple(look.starts))

    def _results(self, outputs: Mapping[str, Track | Absent]) -> Iterator[ExpertResult]:
        for name, output in outputs.items():
            staged = self._tracks.stage(output) if isinstance(output, Track) else None
            yield ExpertResult.of(name, self.fingerprints[name], output, staged)

    @property
    def _speech(self) -> LocalExtractor:
        with self._loading:
            return self._loaded_speech

    @cached_property
    def _loaded_speech(self) -> LocalExtractor:
        assert self._experts.load_speech is not None  # noqa: S101 - there would be no allowance
        return LocalExtractor([self._experts.load_speech()], self._decoder, self._tracks)


class _Look:
    """Runs the experts on the key frames of one file, window by window."""

    def __init__(self, experts: QuickExperts, runner: ExpertRunner) -> None:
        self._experts, self._runner = experts, runner
        self._rows: dict[str, list[Track | Absent]] = {e.card.name: [] for e in experts.frames}
        self._texts: list[Track | Absent] = []
        self._next_text = 0.0
        self.starts: list[float] = []  # of the stretches between key frames
        self.end = 0.0

    @property
    def still(self) -> bool:
        """Whether the file is a picture."""
        return bool(self.starts) and self.end == 0.0

    def take(self, window: Window) -> None:
        self.end = max(self.end, window.end)
        (frames,) = window.parts
        if not isinstance(frames, Frames) or not len(frames):
            return
        self.starts += frames.times.tolist()
        if window.end > 0.0:  # a picture is given to them as it is
            for expert in self._experts.frames:
                name = expert.card.name
                self._rows[name].append(self._runner.run(name, scaled(frames, _short_side(expert))))
        if self._experts.text is not None:
            some = self._for_text(frames)
            if len(some):
                self._texts.append(self._runner.run(self._experts.text.card.name, some))

    def _for_text(self, frames: Frames) -> Frames:
        chosen = []
        for number, time in enumerate(frames.times.tolist()):
            if time >= self._next_text:
                chosen.append(number)
                self._next_text = time + TEXT_EVERY
        return Frames(frames.images[chosen], frames.times[chosen], TEXT_EVERY)

    def rows(self) -> dict[str, Track | Absent]:
        """Return the tracks of the key frames: each row holds until the next key frame."""
        outputs = {name: joined(parts, has_stream=True, sound=False) for name, parts in self._rows.items()}
        return {name: self._until_the_next(output) for name, output in outputs.items()}

    def _until_the_next(self, output: Track | Absent) -> Track | Absent:
        if isinstance(output, Absent):
            return output
        starts = output.times[:, 0]
        ends = np.append(starts[1:], max(self.end, starts[-1]))
        return Track(output.values, np.stack([starts, ends], axis=1), output.words)

    def texts(self) -> dict[str, Track | Absent]:
        if self._experts.text is None:
            return {}
        return {self._experts.text.card.name: joined(self._texts, has_stream=True, sound=False)}


def scaled(frames: Frames, short_side: int) -> Frames:
    """Scale frames to a shorter side of at most `short_side` pixels.

    This is by area averaging, as the decoder does it.
    """
    import cv2

    height, width = frames.images.shape[1:3]
    factor = short_side / min(height, width)
    if factor >= 1.0:
        return frames
    size = max(1, round(width * factor)), max(1, round(height * factor))
    images = np.stack([cv2.resize(image, size, interpolation=cv2.INTER_AREA) for image in frames.images])
    return Frames(images, frames.times, frames.period)


def _short_side(expert: Expert) -> int:
    need = expert.card.need
    assert isinstance(need, FrameNeed)  # noqa: S101 - only such experts take key frames
    return need.short_side


def _ignore(seconds: float) -> None:
    return None
