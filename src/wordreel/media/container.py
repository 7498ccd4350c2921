"""Open one file with PyAV inside the worker, so that only its own bytes can be read.

The size that a header declares is checked before any decoder sees the file: decoders refuse absurd sizes
themselves but do not say so, and a size is best refused before memory for it is allocated. Formats not parsed
here are checked by the decoder's own limit and frame by frame.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from typing import Any

from wordreel.errors import BrokenMedia, OverLimit
from wordreel.media import formats
from wordreel.media.formats import GIF, MP4, Container
from wordreel.media.types import Limits

_BUFFER = 1 << 16
_HEADER = 1 << 20  # bytes read to find a declared size


class FilePosition:
    """The part of a file object that PyAV moves about in."""

    def __init__(self, size: int = 0) -> None:
        self._size, self._position = size, 0

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move the position; before the start is an error."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise OSError("before the start of the file")
        self._position = base + offset
        return self._position

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def seekable(self) -> bool:
        """Return True: the file is on a disk."""
        return True


class DescriptorReader(FilePosition):
    """A read-only file object over a shared descriptor, with a position of its own."""

    def __init__(self, descriptor: int, size: int) -> None:
        super().__init__(size)
        self._descriptor = descriptor

    def read(self, count: int) -> bytes:
        """Read bytes at the position."""
        data = os.pread(self._descriptor, count, self._position)
        self._position += len(data)
        return data


def open_container(
    descriptor: int, size: int, container: Container, limits: Limits, hwaccel: Any = None
) -> Any:
    """Return a PyAV container over the descriptor, read by exactly the demuxer that was sniffed."""
    import av

    pixels = declared_size(descriptor, size, container)
    if pixels is not None:
        check_pixels(*pixels, limits)
    options = {
        "protocol_whitelist": "none",
        "enable_drefs": "0",
        "use_absolute_path": "0",
        "max_pixels": str(limits.pixels),
    }
    try:
        opened = av.open(
            DescriptorReader(descriptor, size),
            mode="r",
            format=container.demuxer,
            options=options,
            buffer_size=_BUFFER,
            metadata_errors="replace",
            hwaccel=hwaccel,
        )
    except (av.error.MemoryError, MemoryError):
        raise
    except (av.FFmpegError, ValueError, OSError, RuntimeError) as error:
        raise BrokenMedia(_open_error(descriptor, size, container, error)) from error
    declared = (opened.duration or 0) / 1e6
    if declared > limits.seconds and not container.picture:
        raise OverLimit(f"{declared:.0f} seconds is over the limit of {limits.seconds:.0f} seconds")
    return opened


def video_stream(container: Any) -> Any | None:
    """Return the main moving picture; cover art is not one."""
    import av

    art = av.stream.Disposition.attached_pic | av.stream.Disposition.timed_thumbnails
    streams = [s for s in container.streams.video if s.codec_context is not None and not s.disposition & art]
    default = [s for s in streams if s.disposition & av.stream.Disposition.default]
    return next(iter(default or streams), None)


def audio_stream(container: Any) -> Any | None:
    """Return the main sound."""
    import av

    streams = [s for s in container.streams.audio if s.codec_context is not None]
    default = [s for s in streams if s.disposition & av.stream.Disposition.default]
    return next(iter(default or streams), None)


def check_pixels(width: int, height: int, limits: Limits) -> None:
    """Refuse a picture that is larger than the limit, or that has no area."""
    if width * height > limits.pixels:
        raise OverLimit(f"{width} x {height} pixels is over the limit of {limits.pixels / 1e6:g} megapixels")


def _open_error(descriptor: int, size: int, container: Container, error: Exception) -> str:
    if container.demuxer == "mov":
        boxes = mp4_boxes(descriptor, size)
        names = {name for name, _, _ in boxes}
        whole = bool(boxes) and boxes[-1][1] + boxes[-1][2] == size
        if "moov" not in names and "moof" not in names:
            cut = "truncated" if not whole else "incomplete"
            return f"{cut}: the index (moov box) is missing, so nothing can be decoded"
        if not whole:
            return "truncated: the index (moov box) is cut off, so nothing can be decoded"
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return f"the {container.name} header cannot be read: {text[:120].lower()}"


def declared_size(descriptor: int, size: int, container: Container) -> tuple[int, int] | None:
    """Return width and height according to the header; None if they are not simple to find."""
    if container == formats.MP4:
        return _mp4(descriptor, size)
    head = os.pread(descriptor, _HEADER, 0)
    try:
        if container == formats.PNG:
            return _pair(">II", head, 16)
        if container == formats.GIF:
            return _pair("<HH", head, 6)
        if container == formats.BMP:
            small = int.from_bytes(head[14:18], "little") == 12
            return _pair("<HH" if small else "<ii", head, 18)
        if container == formats.JPEG:
            return _jpeg(head)
        if container == formats.WEBP:
            return _webp(head)
        if container == formats.AVI:
            at = head.find(b"vids")
            at = head.find(b"strf", at) if at >= 0 else -1
            return _pair("<ii", head, at + 12) if at >= 0 else None
    except struct.error:
        return None
    return None


def _pair(layout: str, head: bytes, at: int) -> tuple[int, int]:
    width, height = struct.unpack_from(layout, head, at)
    return abs(width), abs(height)


def _jpeg(head: bytes) -> tuple[int, int] | None:
    """Walk the segments to the start of frame, which holds height and width."""
    at = 2
    while at + 9 <= len(head) and head[at] == 0xFF:
        marker = head[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", head, at + 5)
            return width, height
        at += 2 + int.from_bytes(head[at + 2 : at + 4], "big")
    return None


def _webp(head: bytes) -> tuple[int, int] | None:
    kind = head[12:16]
    if kind == b"VP8X":
        return int.from_bytes(head[24:27], "little") + 1, int.from_bytes(head[27:30], "little") + 1
    if kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", head, 26)
        return width & 0x3FFF, height & 0x3FFF
    if kind == b"VP8L":
        bits = int.from_bytes(head[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    return None


def _mp4(descriptor: int, size: int) -> tuple[int, int] | None:
    """Return the size in the largest sample description.

    In sample descriptions of sound the same bytes hold a rate and a zero.
    """
    largest = (0, 0)
    for name, position, length in mp4_boxes(descriptor, size):
        if name != "moov":
            continue
        moov = os.pread(descriptor, min(length, 16 * _HEADER), position)
        at = moov.find(b"stsd")
        while 0 <= at <= len(moov) - 48:
            dimensions = _pair(">HH", moov, at + 44)
            largest = max(largest, dimensions, key=lambda pair: pair[0] * pair[1])
            at = moov.find(b"stsd", at + 4)
    return largest


def refers_elsewhere(descriptor: int, size: int) -> bool:
    """Return whether an MP4 file refers to another file for its samples, or for the film itself."""
    for name, position, length in mp4_boxes(descriptor, size):
        if name == "moov":
            moov = os.pread(descriptor, min(length, 16 * _HEADER), position)
            return b"rmra" in moov or (b"dref" in moov and b"alis" in moov)
    return False


def mp4_boxes(descriptor: int, size: int) -> list[tuple[str, int, int]]:
    """Name, position and declared length of the outermost boxes of an MP4 file.

    All are complete if the last one ends where the file does.
    """
    boxes: list[tuple[str, int, int]] = []
    position = 0
    while position + 8 <= size and len(boxes) < 1000:
        head = os.pread(descriptor, 16, position)
        length = int.from_bytes(head[:4], "big")
        if length == 1:
            length = int.from_bytes(head[8:16], "big")
        elif length == 0:
            length = size - position
        boxes.append((head[4:8].decode("latin-1"), position, length))
        if length < 8:
            break
        position += length
    return boxes


@dataclass(frozen=True)
class DecodeTask:
    """A file to decode: its descriptor, size and container, its limits, and the device for its video."""

    descriptor: int
    size: int
    container: Container
    limits: Limits
    hwaccel: Any = None  # PyAV's `HWAccel`; None decodes in software

    def open(self) -> Any:
        """Open the file by its demuxer."""
        return open_container(self.descriptor, self.size, self.container, self.limits)

    def open_video(self) -> Any:
        """Open the file to decode its video, on the device if there is one."""
        return open_container(self.descriptor, self.size, self.container, self.limits, self.hwaccel)


def is_single_gif(task: DecodeTask) -> bool:
    """Return whether a GIF holds only one picture; more make it a video."""
    if task.container != GIF:
        return False
    packets = 0
    for packet in task.open().demux(video=0):
        packets += packet.size > 0
        if packets > 1:
            return False
    return True


def no_media_error(task: DecodeTask, video: bool) -> BrokenMedia:
    """Return the error for a file without a single frame or sample."""
    if task.container == MP4 and refers_elsewhere(task.descriptor, task.size):
        return BrokenMedia("its pictures and sound are in another file, which is not opened")
    if video:
        return BrokenMedia("truncated or damaged: no frame could be decoded")
    return BrokenMedia("no picture or sound in it could be decoded")
