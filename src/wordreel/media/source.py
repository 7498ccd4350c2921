"""Opening one file for decoding, inside the worker. Only its own bytes can be read through it."""

from __future__ import annotations

import os
from typing import Any

from wordreel.errors import BrokenMedia, OverLimit
from wordreel.media.claims import boxes, claimed_size
from wordreel.media.formats import Container
from wordreel.media.types import Limits

_BUFFER = 1 << 16


class Bytes:
    """A read-only file object over a shared descriptor, with a position of its own."""

    def __init__(self, descriptor: int, size: int) -> None:
        self._descriptor = descriptor
        self._size = size
        self._position = 0

    def read(self, count: int) -> bytes:
        data = os.pread(self._descriptor, count, self._position)
        self._position += len(data)
        return data

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise OSError("before the start of the file")
        self._position = base + offset
        return self._position

    def tell(self) -> int:
        return self._position

    def seekable(self) -> bool:
        return True


def open_container(descriptor: int, size: int, container: Container, limits: Limits) -> Any:
    """A PyAV container over the descriptor, read by exactly the demuxer that was sniffed."""
    import av

    claimed_pixels = claimed_size(descriptor, size, container)
    if claimed_pixels is not None:
        check_pixels(*claimed_pixels, limits)
    options = {
        "protocol_whitelist": "none",
        "enable_drefs": "0",
        "use_absolute_path": "0",
        "max_pixels": str(limits.pixels),
    }
    try:
        opened = av.open(
            Bytes(descriptor, size),
            mode="r",
            format=container.demuxer,
            options=options,
            buffer_size=_BUFFER,
            metadata_errors="replace",
        )
    except (av.error.MemoryError, MemoryError):
        raise
    except (av.FFmpegError, ValueError, OSError, RuntimeError) as error:
        raise BrokenMedia(_why_not(descriptor, size, container, error)) from error
    claimed = (opened.duration or 0) / 1e6
    if claimed > limits.seconds and not container.picture:
        raise OverLimit(f"{claimed:.0f} seconds is over the limit of {limits.seconds:.0f} seconds")
    return opened


def video_stream(container: Any) -> Any | None:
    """The main moving picture; cover art is not one."""
    import av

    art = av.stream.Disposition.attached_pic | av.stream.Disposition.timed_thumbnails
    streams = [s for s in container.streams.video if s.codec_context is not None and not s.disposition & art]
    default = [s for s in streams if s.disposition & av.stream.Disposition.default]
    return next(iter(default or streams), None)


def audio_stream(container: Any) -> Any | None:
    """The main sound."""
    import av

    streams = [s for s in container.streams.audio if s.codec_context is not None]
    default = [s for s in streams if s.disposition & av.stream.Disposition.default]
    return next(iter(default or streams), None)


def check_pixels(width: int, height: int, limits: Limits) -> None:
    """Refuse a picture that is larger than the limit, or that has no area."""
    if width * height > limits.pixels:
        raise OverLimit(f"{width} x {height} pixels is over the limit of {limits.pixels / 1e6:g} megapixels")


def _why_not(descriptor: int, size: int, container: Container, error: Exception) -> str:
    if container.demuxer == "mov":
        found = boxes(descriptor, size)
        names = {name for name, _, _ in found}
        whole = bool(found) and found[-1][1] + found[-1][2] == size
        if "moov" not in names and "moof" not in names:
            cut = "truncated" if not whole else "incomplete"
            return f"{cut}: the index (moov box) is missing, so nothing can be decoded"
        if not whole:
            return "truncated: the index (moov box) is cut off, so nothing can be decoded"
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return f"the {container.name} header cannot be read: {text[:120].lower()}"
