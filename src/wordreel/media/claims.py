"""How large a file says its pictures are, read from its header before any decoder sees it.

Decoders refuse absurd sizes themselves but do not say so; and a size is best refused before memory for it
is asked for. Formats not read here are measured by the decoder's own limit and frame by frame.
"""

from __future__ import annotations

import os
import struct

from wordreel.media import formats
from wordreel.media.formats import Container

_LOOK = 1 << 20


def claimed_size(descriptor: int, size: int, container: Container) -> tuple[int, int] | None:
    """Width and height as the header has them; None where it is not that simple."""
    if container == formats.MP4:
        return _mp4(descriptor, size)
    head = os.pread(descriptor, _LOOK, 0)
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
    """The largest sample description. In those of sound the same bytes hold a rate and a zero."""
    largest = (0, 0)
    for name, position, length in boxes(descriptor, size):
        if name != "moov":
            continue
        moov = os.pread(descriptor, min(length, 16 * _LOOK), position)
        at = moov.find(b"stsd")
        while 0 <= at <= len(moov) - 48:
            found = _pair(">HH", moov, at + 44)
            largest = max(largest, found, key=lambda pair: pair[0] * pair[1])
            at = moov.find(b"stsd", at + 4)
    return largest


def elsewhere(descriptor: int, size: int) -> bool:
    """Whether an MP4 file says that its samples, or the film itself, are in another file."""
    for name, position, length in boxes(descriptor, size):
        if name == "moov":
            moov = os.pread(descriptor, min(length, 16 * _LOOK), position)
            return b"rmra" in moov or (b"dref" in moov and b"alis" in moov)
    return False


def boxes(descriptor: int, size: int) -> list[tuple[str, int, int]]:
    """Name, position and claimed length of the outermost boxes of an MP4 file.

    They are all there if the last one ends where the file does.
    """
    found: list[tuple[str, int, int]] = []
    position = 0
    while position + 8 <= size and len(found) < 1000:
        head = os.pread(descriptor, 16, position)
        length = int.from_bytes(head[:4], "big")
        if length == 1:
            length = int.from_bytes(head[8:16], "big")
        elif length == 0:
            length = size - position
        found.append((head[4:8].decode("latin-1"), position, length))
        if length < 8:
            break
        position += length
    return found
