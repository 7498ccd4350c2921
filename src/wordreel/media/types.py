"""Requests for decoded media, and the media returned. No decoding here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from wordreel.progress import ProgressCallback


@dataclass(frozen=True)
class FrameNeed:
    """RGB frames at `rate` per second, the shorter side scaled to `short_side` pixels (never up).

    `accurate` colours are those of an exact conversion, scaled bicubically, as image libraries do it; the
    fast conversion is a few levels off. It is no part of fingerprints: raise an expert's version with it.
    """

    rate: float
    short_side: int
    accurate: bool = field(default=False, repr=False)


@dataclass(frozen=True)
class AudioNeed:
    """Mono float32 sound in [-1, 1] at `rate` samples a second."""

    rate: int


Need = FrameNeed | AudioNeed


@dataclass(frozen=True)
class Frames:
    """`images [n, height, width, 3]` uint8 RGB, upright; `times [n]` seconds, ascending.

    `period` is the requested spacing (1 / rate), so that a frame stands for `[t, t + period)`.
    A still picture is one frame at time 0.
    """

    images: NDArray[np.uint8]
    times: NDArray[np.float64]
    period: float

    def __len__(self) -> int:
        return len(self.images)


@dataclass(frozen=True)
class Sound:
    """`samples [n]` float32 mono at `rate`; the first sample is at `start` seconds."""

    samples: NDArray[np.float32]
    rate: int
    start: float = 0.0

    @property
    def seconds(self) -> float:
        """Return the duration of the samples."""
        return len(self.samples) / self.rate


@dataclass(frozen=True)
class Window:
    """`[start, end)` seconds of a file; `parts` has one entry per need, None where there is no stream."""

    start: float
    end: float
    parts: tuple[Frames | Sound | None, ...]


@dataclass(frozen=True)
class MediaInfo:
    """What a file is. Width and height are as displayed, after rotation."""

    kind: str  # "video", "audio" or "image"
    container: str
    duration: float  # seconds; 0 for a still picture
    width: int = 0
    height: int = 0
    rotation: int = 0
    frame_rate: float = 0.0
    video_codec: str = ""
    audio_codec: str = ""
    sample_rate: int = 0
    recorded: str | None = ""  # the date in the metadata (`capture_date`); None where it was not read yet

    @property
    def has_video(self) -> bool:
        """Return whether there is a moving picture."""
        return bool(self.video_codec)


@dataclass(frozen=True)
class Limits:
    """What a stranger's file may cost. Beyond any of these it is refused with the reason."""

    pixels: int = 64_000_000  # per frame
    seconds: float = 12 * 3600.0  # of media
    file_bytes: int = 200 * 2**30
    memory_bytes: int = 3 * 2**30  # of the decoding worker
    wall_floor: float = 30.0  # seconds of decoding always granted ...
    wall_per_second: float = 4.0  # ... plus this much per second of media


@dataclass(frozen=True)
class CutRequest:
    """What to cut, in seconds, and into which container ("mp4" or "matroska").

    `playable` asks for codecs that every browser plays.
    """

    start: float
    end: float
    tolerance: float = 0.5
    container: str = "mp4"
    playable: bool = False


@dataclass(frozen=True)
class StreamRequest:
    """What to decode of one file."""

    needs: tuple[Need, ...]
    window: float
    start: float = 0.0
    stop: float | None = None
    sparse: bool = False


@dataclass(frozen=True)
class CutReport:
    """What a clip holds: from `start` to `end` of its source, in seconds, and what became of its streams."""

    start: float
    end: float
    picture: str  # "copied", "encoded", or "none" where the source has none
    sound: str
    bytes: int


class CutStopped(Exception):
    """The cut is no longer wanted."""


@dataclass(frozen=True)
class Watch:
    """What a cut may cost, and who watches it: `stopped` is asked between pieces of the file."""

    max_bytes: int = 64 * 2**30
    stopped: Callable[[], bool] = lambda: False
    on_progress: ProgressCallback | None = None
