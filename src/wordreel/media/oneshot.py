"""Whole-file helpers with a fence of their own, for scripts and single files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from wordreel.errors import NotMedia
from wordreel.media.fence import Fence
from wordreel.media.gather import Order
from wordreel.media.types import AudioNeed, FrameNeed, Frames, MediaInfo, Sound


def probe(path: Path) -> MediaInfo:
    """What a file is."""
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
    """Frames at `start + k / rate` until `end`, each the one on display at its time.

    With `sparse`, the key frame at or before each of these times instead, found by seeking, every key
    frame once and with its true time: far cheaper, and unevenly spaced.
    """
    order = Order((FrameNeed(rate, short_side),), 60.0, start or 0.0, end, sparse)
    with Fence() as fence:
        parts = [window.parts[0] for window in fence.run(path, order)]
    found = [part for part in parts if isinstance(part, Frames) and len(part)]
    if not found:
        if any(part is None for part in parts):
            raise NotMedia("there are no pictures in this file, only sound")
        return next(part for part in parts if isinstance(part, Frames))
    images = found[0].images if len(found) == 1 else np.concatenate([part.images for part in found])
    return Frames(images, np.concatenate([part.times for part in found]), 1.0 / rate)


def audio(path: Path, rate: int = 16000) -> Sound:
    """All sound of a file, mono, from time 0."""
    with Fence() as fence:
        windows = list(fence.stream(path, [AudioNeed(rate)]))
    pieces = [part.samples for window in windows if isinstance(part := window.parts[0], Sound)]
    if not pieces:
        raise NotMedia("there is no sound in this file")
    return Sound(np.concatenate(pieces), rate)
