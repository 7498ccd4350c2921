"""Probe and decode single files whole, with a fence of their own."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from wordreel.errors import NotMedia
from wordreel.media.fence import Fence
from wordreel.media.types import AudioNeed, FrameNeed, Frames, MediaInfo, Sound
from wordreel.media.window_reader import StreamRequest


def probe(path: Path) -> MediaInfo:
    """Return a file's kind, size and codecs, like `Fence.probe` with a fence of its own.

    Args:
        path: A video, a sound or a picture.

    Raises:
        MediaError: It is not media, is damaged, or exceeds the limits.

    >>> import cv2, tempfile
    >>> path = Path(tempfile.mkdtemp()) / "black.png"
    >>> _ = cv2.imwrite(str(path), np.zeros((20, 30, 3), np.uint8))
    >>> info = probe(path)
    >>> info.kind, info.width, info.height
    ('image', 30, 20)
    """
    with Fence() as fence:
        return fence.probe(path)


def frames(
    path: Path,
    rate: float = 1.0,
    short_side: int = 256,
    start: float | None = None,
    end: float | None = None,
    sparse: bool = False,
) -> Frames:
    """Frames at `start + k / rate` until `end`, each the one displayed at its time.

    Args:
        path: A video or a picture.
        rate: Frames per second.
        short_side: The shorter side is scaled down to this many pixels.
        start: Seconds; the beginning if None.
        end: Seconds; the end of the file if None.
        sparse: Return the key frame at or before each time instead, each once and with its true time: far
            cheaper, and unevenly spaced.

    Raises:
        MediaError: The file cannot be decoded; `NotMedia` if it has no pictures.

    >>> import cv2, tempfile
    >>> path = Path(tempfile.mkdtemp()) / "black.png"
    >>> _ = cv2.imwrite(str(path), np.zeros((20, 30, 3), np.uint8))
    >>> frames(path).images.shape
    (1, 20, 30, 3)
    """
    request = StreamRequest((FrameNeed(rate, short_side),), 60.0, start or 0.0, end, sparse)
    with Fence() as fence:
        parts = [window.parts[0] for window in fence.run(path, request)]
    filled = [part for part in parts if isinstance(part, Frames) and len(part)]
    if not filled:
        if any(part is None for part in parts):
            raise NotMedia("there are no pictures in this file, only sound")
        return next(part for part in parts if isinstance(part, Frames))
    images = filled[0].images if len(filled) == 1 else np.concatenate([part.images for part in filled])
    return Frames(images, np.concatenate([part.times for part in filled]), 1.0 / rate)


def audio(path: Path, rate: int = 16000) -> Sound:
    """All sound of a file, mono, from time 0.

    Args:
        path: A sound, or a video with sound.
        rate: Samples per second.

    Raises:
        MediaError: The file cannot be decoded; `NotMedia` if it has no sound.

    >>> import tempfile, wave
    >>> path = Path(tempfile.mkdtemp()) / "silence.wav"
    >>> with wave.open(str(path), "wb") as file:
    ...     file.setparams((1, 2, 16000, 0, "NONE", ""))
    ...     file.writeframes(bytes(2 * 16000))
    >>> audio(path).seconds
    1.0
    """
    with Fence() as fence:
        windows = list(fence.stream(path, [AudioNeed(rate)]))
    pieces = [part.samples for window in windows if isinstance(part := window.parts[0], Sound)]
    if not pieces:
        raise NotMedia("there is no sound in this file")
    return Sound(np.concatenate(pieces), rate)
