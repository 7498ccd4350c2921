"""One decoding pass over a file that feeds every expert."""

from __future__ import annotations

import hashlib
import os
import stat
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import numpy as np

from wordreel.errors import MediaError, WeightsError
from wordreel.experts.base import Expert
from wordreel.library.chunks import FrameChunker, SoundChunker
from wordreel.library.clips import SHOTS_EXPERT, cut_clips, shots_of
from wordreel.media.types import AudioNeed, Frames, MediaInfo, Need, Sound, Window
from wordreel.types import Absent, Clip, Track, Words

WINDOW = 60.0


class MediaDecoder(Protocol):
    """The part of `wordreel.media.Fence` that the library uses."""

    def probe(self, path: Path) -> MediaInfo: ...

    def stream(self, path: Path, needs: Sequence[Need], window: float = WINDOW) -> Iterator[Window]: ...


class ExpertFailed(Exception):
    """An expert could not process this file; the message is the reason the user reads."""


@dataclass(frozen=True)
class Extracted:
    """A track or Absent per expert, and where the media really ended (0 if nothing was decoded)."""

    outputs: dict[str, Track | Absent]
    end: float


class ExpertRunner:
    """Runs loaded experts by name, each on one thread at a time, and validates what they return."""

    def __init__(self, experts: Sequence[Expert]) -> None:
        self.experts = {expert.card.name: expert for expert in experts}
        self._locks = {name: threading.Lock() for name in self.experts}

    def run(self, name: str, media: Frames | Sound) -> Track | Absent:
        expert = self.experts[name]
        try:
            with self._locks[name]:
                output = expert.extract(media)
            if isinstance(output, Track):
                _validate(output, expert.card.dim)
            return output
        except (MemoryError, WeightsError):
            raise  # not this file's fault: the next one would fail as well
        except Exception as error:
            reason = " ".join(str(error).split()) or type(error).__name__  # one line, fit for a list
            raise ExpertFailed(f"expert {name}: {reason}") from error


def extract(
    decoder: MediaDecoder,
    path: Path,
    runner: ExpertRunner,
    names: Sequence[str],
    on_window: Callable[[Window], None],
) -> Extracted:
    """Decode once for any number of experts; experts with the same needs share the same frames."""
    cards = {name: runner.experts[name].card for name in names}
    needs: list[Need] = list(dict.fromkeys(card.need for card in cards.values()))
    chunkers = {
        name: SoundChunker(card.span) if isinstance(card.need, AudioNeed) else FrameChunker(card.span)
        for name, card in cards.items()
    }
    outputs: dict[str, list[Track | Absent]] = {name: [] for name in names}
    no_stream: set[str] = set(names)
    end = 0.0
    if needs:
        with closing(closable(decoder.stream(path, needs, window=WINDOW))) as windows:
            for window in windows:
                on_window(window)
                end = max(end, window.end)
                for name, chunker in chunkers.items():
                    part = window.parts[needs.index(cards[name].need)]
                    if part is not None:
                        no_stream.discard(name)
                        for media in chunker.push(part, window.end):  # type: ignore[arg-type]
                            outputs[name].append(runner.run(name, media))
        for name, chunker in chunkers.items():
            for media in chunker.flush():
                outputs[name].append(runner.run(name, media))
    return Extracted(
        {n: joined(outputs[n], n in no_stream, isinstance(cards[n].need, AudioNeed)) for n in names}, end
    )


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
    except ExpertFailed as error:
        raise MediaError(f"{path}: {error}") from error
    if info.kind != "image" and extracted.end > 0:
        info = replace(info, duration=extracted.end)  # the header's duration may be wrong
    tracks = {name: output for name, output in extracted.outputs.items() if isinstance(output, Track)}
    clips = cut_clips(info, shots_of(tracks.get(SHOTS_EXPERT), info.duration))
    return ExtractedFile(path, info, tracks, tuple(Clip("", c.start, c.end, c.whole) for c in clips))


def content_hash(path: Path) -> str:
    """The hash that identifies a file's bytes in a library; empty for anything but a regular file."""
    # O_NONBLOCK: opening a pipe must not wait for its other end.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return ""
        return hashlib.file_digest(file, "sha256").hexdigest()


def closable(windows: Iterator[Window]) -> Generator[Window, None, None]:
    """A generator even if the decoder gives a plain iterator, so that it can be closed early."""
    yield from windows


def joined(outputs: list[Track | Absent], no_stream: bool, sound: bool) -> Track | Absent:
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
    return Absent(f"no {what} stream" if no_stream else f"no {what} could be decoded")


def _clean(words: Words) -> Words:
    """Words that SQLite can store: valid Unicode without NUL."""
    text = words.text.replace("\x00", " ").encode("utf-8", "replace").decode()
    return words if text == words.text else Words(text, words.start, words.end, words.score)


def _validate(track: Track, dim: int) -> None:
    """Refuse values that would poison every later search: better one failed file than a broken library."""
    if track.dim != dim:
        raise ValueError(f"returned {track.dim} numbers per row instead of {dim}")
    if not np.isfinite(track.values).all():
        raise ValueError("returned values that are not finite")
    starts, ends = track.times[:, 0], track.times[:, 1]
    if not np.isfinite(track.times).all() or (starts > ends).any() or (np.diff(starts) < 0).any():
        raise ValueError("returned times that are not in order")
    if not all(np.isfinite([w.start, w.end, w.score]).all() for w in track.words):
        raise ValueError("returned words without a time")
