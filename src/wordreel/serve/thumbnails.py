"""Thumbnails and animated previews of moments, decoded behind the fence and cached on disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from wordreel.errors import BrokenMedia, NotMedia
from wordreel.ingest.extract import closable
from wordreel.media.types import FrameNeed, Frames, Window
from wordreel.media.window_reader import StreamRequest
from wordreel.serve.disk_cache import DiskCache

SIDE = 180  # pixels of the shorter side
SIDES = (SIDE, 360, 540)  # for screens with one, two and three pixels to a CSS pixel
QUALITY = 78
SHOWN = 8  # frames of a preview
FRAME = 250  # milliseconds each is shown
PREVIEW_QUALITY = 55
LONGEST = 20.0  # seconds that a preview covers
CLOSE = 0.1  # seconds: how exactly a moment is meant

Image = NDArray[np.uint8]


class Decoder(Protocol):
    """The part of `wordreel.media.Fence` that thumbnails need."""

    def run(self, path: Path, request: StreamRequest) -> Iterator[Window]: ...


class Thumbnails:
    """Thumbnails of files, by the hash of their bytes."""

    def __init__(self, fence: Decoder, cache: DiskCache) -> None:
        self._fence, self._cache = fence, cache

    def thumb(self, content: str, path: Path, second: float, duration: float, size: int = SIDE) -> bytes:
        """A JPEG of the frame at a second, or of the last one before the end; `size` is rounded up to a side
        that is cached."""
        at = _rounded(min(second, max(0.0, duration - CLOSE)))
        side = next((one for one in SIDES if one >= size), SIDES[-1])
        return self._cache.get(
            f"thumb {content} {at:.1f} {side}", lambda: jpeg(self._frames(path, at, at + CLOSE, 1, side)[0])
        )

    def preview(self, content: str, path: Path, start: float, end: float, duration: float) -> bytes:
        """An animated WebP of a few frames, evenly spaced; of a still picture one frame."""
        first = _rounded(min(start, max(0.0, duration - CLOSE)))
        last = _rounded(min(max(end, first + CLOSE), duration, first + LONGEST))
        return self._cache.get(
            f"preview {content} {first:.1f} {last:.1f} {SIDE}",
            lambda: webp(self._frames(path, first, max(last, first + CLOSE), SHOWN)),
        )

    def _frames(self, path: Path, start: float, end: float, count: int, side: int = SIDE) -> Sequence[Image]:
        rate = count / (end - start)
        request = StreamRequest((FrameNeed(min(rate, 1000.0), side),), max(0.2, end - start), start, end)
        images: list[Image] = []
        with closing(closable(self._fence.run(path, request))) as windows:
            for window in windows:
                part = window.parts[0]
                if part is None:
                    raise NotMedia("there are no pictures in this file, only sound")
                if isinstance(part, Frames):
                    images += list(part.images)
                if len(images) >= count:
                    break
        if not images and start > 0:  # the file ends earlier than it says
            return self._frames(path, 0.0, min(end - start, 1.0), count, side)
        if not images:
            raise BrokenMedia("no picture could be decoded")
        return images[:count]


def jpeg(image: Image) -> bytes:
    """`image [height, width, 3]` RGB as JPEG."""
    import cv2

    done, packed = cv2.imencode(".jpg", image[:, :, ::-1], [cv2.IMWRITE_JPEG_QUALITY, QUALITY])
    if not done:
        raise BrokenMedia("the picture cannot be packed")
    return bytes(packed.tobytes())


def webp(images: Sequence[Image]) -> bytes:
    """Frames as an animated WebP; one frame, or a codec without animations, gives a still one."""
    import cv2

    quality = [cv2.IMWRITE_WEBP_QUALITY, PREVIEW_QUALITY]
    frames = [np.ascontiguousarray(image[:, :, ::-1]) for image in images]
    if len(frames) > 1 and hasattr(cv2, "imencodeanimation"):
        moving = cv2.Animation()
        moving.frames = frames
        moving.durations = [FRAME] * len(frames)
        done, packed = cv2.imencodeanimation(".webp", moving, quality)
        if done:
            return bytes(packed.tobytes())
    done, packed = cv2.imencode(".webp", frames[0], quality)
    if not done:
        raise BrokenMedia("the picture cannot be packed")
    return bytes(packed.tobytes())


def _rounded(second: float) -> float:
    """Neighbouring moments share their picture."""
    return round(second / CLOSE) * CLOSE
