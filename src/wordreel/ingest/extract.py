"""One decoding pass over a file that feeds every expert."""

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
from wordreel.errors import MediaError
from wordreel.experts.base import Expert
from wordreel.ingest.expert_runner import ExpertFailed, ExpertLane, ExpertRunner
from wordreel.media.types import AudioNeed, MediaInfo, Need, Window
from wordreel.types import Absent, Clip, Track, Words

WINDOW = 5.0  # seconds decoded at once: every expert of every file may hold three windows of large frames


class MediaDecoder(Protocol):
    """The part of `wordreel.media.Fence` that the library uses."""

    def probe(self, path: Path) -> MediaInfo: ...

    def stream(self, path: Path, needs: Sequence[Need], window: float = WINDOW) -> Iterator[Window]: ...


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
