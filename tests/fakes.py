"""A decoder and experts that cost nothing, with the same methods as the real ones.

A fake media file is a line of JSON after a magic word: `{"kind", "seconds", "seed", "words", "bad"}`.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from wordreel.errors import BrokenMedia, NotMedia
from wordreel.experts.base import Card, fingerprint
from wordreel.media.types import AudioNeed, FrameNeed, Frames, MediaInfo, Need, Sound, Window
from wordreel.types import Absent, Labels, Track, Words

MAGIC = b"FAKEMEDIA "


def write_media(path: Path, seconds: float = 30.0, seed: int = 0, kind: str = "video", **extra: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    told = {"kind": kind, "seconds": seconds, "seed": seed, "sound": kind != "image", **extra}
    path.write_bytes(MAGIC + json.dumps(told).encode())
    return path


def _read(path: Path) -> dict[str, Any]:
    data = path.read_bytes()
    if not data.startswith(MAGIC):
        raise NotMedia("not media")
    told: dict[str, Any] = json.loads(data[len(MAGIC) :])
    if told.get("bad"):
        raise BrokenMedia(str(told["bad"]))
    return told


class FakeFence:
    """Frames are 4 x 4 pixels whose colours follow from the seed and the time; sound is a ramp."""

    def __init__(self, delay: float = 0.0, on_stream: Callable[[str], None] | None = None) -> None:
        self.delay = delay
        self.on_stream = on_stream
        self.streamed: list[str] = []
        self.probed: list[str] = []

    def probe(self, path: Path) -> MediaInfo:
        self.probed.append(str(path))
        told = _read(path)
        kind = str(told["kind"])
        return MediaInfo(
            kind=kind,
            container="fake",
            duration=0.0 if kind == "image" else float(told["seconds"]),
            width=4 if kind != "audio" else 0,
            height=4 if kind != "audio" else 0,
            frame_rate=25.0 if kind == "video" else 0.0,
            video_codec="fake" if kind != "audio" else "",
            audio_codec="fake" if told["sound"] else "",
            sample_rate=100 if told["sound"] else 0,
        )

    def stream(self, path: Path, needs: Sequence[Need], window: float = 60.0) -> Iterator[Window]:
        self.streamed.append(str(path))
        if self.on_stream:
            self.on_stream(str(path))
        told = _read(path)
        info = self.probe(path)
        rng = np.random.default_rng(int(told["seed"]))
        base = rng.integers(0, 200, 3)
        end = info.duration
        start = 0.0
        while start < end or start == 0.0:
            time.sleep(self.delay)
            stop = start + window
            if end - stop < 1.0:  # as the real one: a short remainder joins the last window
                stop = end
            parts: list[Frames | Sound | None] = []
            for need in needs:
                if isinstance(need, FrameNeed):
                    parts.append(_frames(need, start, stop, base) if info.has_video else None)
                else:
                    parts.append(_sound(need, start, stop, int(base[0])) if info.audio_codec else None)
            yield Window(start, stop, tuple(parts))
            if told.get("breaks") and start >= float(told["breaks"]):
                raise BrokenMedia("the stream ends in the middle")
            start = max(stop, start + 0.1)

    def quick_look(self, path: Path, need: FrameNeed, window: float = 60.0) -> Iterator[Window]:
        """A key frame every ten seconds."""
        info = self.probe(path)
        if not info.has_video:
            yield Window(0.0, info.duration, (None,))
            return
        for seen in self.stream(path, [replace(need, rate=0.1)], window):
            (frames,) = seen.parts
            assert isinstance(frames, Frames)
            yield Window(seen.start, seen.end, (Frames(frames.images, frames.times, 1 / need.rate),))


def _frames(need: FrameNeed, start: float, stop: float, base: np.ndarray) -> Frames:
    first = round(start * need.rate)
    last = max(first + 1, int(np.ceil(stop * need.rate - 1e-9)))
    times = np.arange(first, last) / need.rate
    colours = (base + 7 * (times[:, None] // 5)).astype(np.uint8)
    images = np.broadcast_to(colours[:, None, None, :], (len(times), 4, 4, 3)).copy()
    return Frames(images, times, 1 / need.rate)


def _sound(need: AudioNeed, start: float, stop: float, base: int) -> Sound:
    index = np.arange(round(start * need.rate), round(stop * need.rate))
    return Sound(((index + base) % 97 / 97).astype(np.float32), need.rate, start)


class Colour:
    """The mean colour of each frame, and its brightness."""

    def __init__(self, name: str = "colour", rate: float = 1.0, span: float = 60.0, version: int = 1) -> None:
        self.card = Card(name, "picture", name, 4, FrameNeed(rate, 4), "none", (), version=version, span=span)
        self.fingerprint = fingerprint(self.card)
        self.calls: list[Frames | Sound] = []
        self.busy = threading.Lock()

    def extract(self, media: Frames | Sound) -> Track | Absent:
        assert self.busy.acquire(blocking=False), "called by two threads at once"
        try:
            assert isinstance(media, Frames)
            self.calls.append(media)
            mean = media.images.mean(axis=(1, 2))
            values = np.concatenate([mean, mean.sum(axis=1, keepdims=True)], axis=1).astype(np.float32)
            return Track(values, np.stack([media.times, media.times + media.period], axis=1))
        finally:
            self.busy.release()

    def labels(self, track: Track) -> Labels | None:
        return None


class Talk:
    """Reads "words" out of sound: one line per span, which says what it heard. Silent spans are absent."""

    def __init__(self, name: str = "talk", span: float = 90.0, version: int = 1, rate: int = 100) -> None:
        self.card = Card(name, "sound", name, 2, AudioNeed(rate), "none", (), version=version, span=span)
        self.fingerprint = fingerprint(self.card)
        self.calls: list[Frames | Sound] = []

    def extract(self, media: Frames | Sound) -> Track | Absent:
        assert isinstance(media, Sound)
        self.calls.append(media)
        if media.seconds < 1:
            return Absent("too short to hear anything")
        end = media.start + media.seconds
        said = f"dogs number {round(float(media.samples[0]) * 97)}"
        values = np.array([[media.samples.mean(), media.samples[0]]], np.float32)
        return Track(values, np.array([[media.start, end]]), (Words(said, media.start, end, 0.5),))

    def labels(self, track: Track) -> Labels | None:
        return None


class Shots(Colour):
    """Rows that `find_shots` can read: wide, and the same for as long as the colour is."""

    def __init__(self, version: int = 1) -> None:
        super().__init__("shots", rate=2.0, span=600.0, version=version)
        self.card = replace(self.card, dim=136)
        self.fingerprint = fingerprint(self.card)

    def extract(self, media: Frames | Sound) -> Track | Absent:
        track = super().extract(media)
        assert isinstance(track, Track)
        levels = track.values[:, :1] // 64 / 4 + track.values[:, :3].sum(1, keepdims=True) / 1e5
        return Track((levels + np.arange(136) / 1000).astype(np.float32), track.times)


class Broken(Colour):
    """Fails for files whose first frame is as told."""

    def __init__(self, error: Callable[[], BaseException], name: str = "broken") -> None:
        super().__init__(name)
        self.error = error

    def extract(self, media: Frames | Sound) -> Track | Absent:
        raise self.error()


def experts() -> list[Colour | Talk]:
    """One of each kind, and one with the name and the need of the shots expert."""
    return [Colour(), Talk(), Shots()]
