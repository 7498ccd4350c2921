"""Open regular files only, and recognise media by their first bytes, never by their name.

Each container wordreel opens is listed in `data/formats.json` with the demuxer that reads it. That demuxer is
then named to the decoder, so nothing is left to guessing: a playlist or a script that calls itself a film
cannot reach a demuxer that opens other files.
"""

from __future__ import annotations

import json
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wordreel.errors import BrokenMedia, NotMedia, OverLimit
from wordreel.media.types import Limits

TABLE = Path(__file__).parent / "data" / "formats.json"
HEAD = 8192
"""How many of a file's first bytes `sniff` wants to see."""


@dataclass(frozen=True)
class Container:
    """`name` is for people, `demuxer` for the decoder; a picture is one frame without a length."""

    name: str
    demuxer: str
    picture: bool = False


def _read_table() -> dict[str, Any]:
    table: dict[str, Any] = json.loads(TABLE.read_text(encoding="utf-8"))
    return table


_TABLE = _read_table()
_CONTAINERS = {
    entry["name"]: Container(entry["name"], entry["demuxer"], entry.get("picture", False))
    for entry in _TABLE["containers"]
}
MP4, AVI, GIF, MP3, WAV, FLAC = (_CONTAINERS[name] for name in ("mp4", "avi", "gif", "mp3", "wav", "flac"))
AAC, AIFF, MPEG_TS = (_CONTAINERS[name] for name in ("aac", "aiff", "mpeg-ts"))
JPEG, PNG, WEBP, BMP = (_CONTAINERS[name] for name in ("jpeg", "png", "webp", "bmp"))

_BOXES = {b"ftyp", b"moov", b"mdat", b"free", b"skip", b"wide", b"pnot"}
_HEIF = {b"heic", b"heix", b"heim", b"heis", b"hevc", b"mif1", b"msf1", b"avif", b"avis"}
_RIFF = {b"AVI ": AVI, b"AVIX": AVI, b"WAVE": WAV, b"WEBP": WEBP}


def sniff(head: bytes) -> Container:
    """Return the container whose first bytes are `head`; raise NotMedia, which says what it is, for others.

    >>> sniff(b"GIF89a" + bytes(20)).name
    'gif'
    >>> sniff(b"#EXTM3U")
    Traceback (most recent call last):
    wordreel.errors.NotMedia: a playlist (HLS) is not opened: it points at other files
    """
    if not head:
        raise BrokenMedia("the file is empty")
    container = _container(head)
    if container is None:
        raise NotMedia(_what_else(head))
    return container


def _container(head: bytes) -> Container | None:
    for entry in _TABLE["containers"]:
        if any(head.startswith(bytes.fromhex(start)) for start in entry.get("starts", ())):
            return _CONTAINERS[entry["name"]]
    if head[4:8] in _BOXES:
        if head[4:8] == b"ftyp" and head[8:12] in _HEIF:
            raise NotMedia("a HEIF or AVIF picture is not opened; convert it to JPEG or PNG first")
        return MP4
    if head[:4] in (b"RIFF", b"RF64", b"BW64"):
        return _RIFF.get(head[8:12])
    if head[:4] == b"FORM" and head[8:12] in (b"AIFF", b"AIFC"):
        return AIFF
    if head[:2] == b"BM" and int.from_bytes(head[14:18], "little") in (12, 16, 40, 52, 56, 64, 108, 124):
        return BMP
    if head[:3] == b"ID3" and len(head) >= 10:
        return _after_id3(head)
    return _by_sync(head)


def _after_id3(head: bytes) -> Container:
    """Return the container behind an ID3 tag: MP3 as a rule, AAC or FLAC now and then."""
    size = 10 + sum((head[6 + i] & 0x7F) << (7 * (3 - i)) for i in range(4))
    body = head[size:]
    if body.startswith(b"fLaC"):
        return FLAC
    return AAC if _aac_frame(body) else MP3


def _by_sync(head: bytes) -> Container | None:
    """Streams without a header: a sync word must come again where the first frame says it ends."""
    for packet, first in ((188, 0), (192, 4), (204, 0)):
        marks = head[first::packet]
        if len(marks) >= 4 and marks.count(0x47) == len(marks):
            return MPEG_TS
    size = _aac_frame(head)
    if size and (len(head) <= size or _aac_frame(head[size:])):
        return AAC
    size = _mp3_frame(head)
    if size and (len(head) <= size or _mp3_frame(head[size:])):
        return MP3
    return None


def _aac_frame(head: bytes) -> int:
    """Bytes of the ADTS frame at the start of `head`, 0 when there is none."""
    if len(head) < 7 or head[0] != 0xFF or head[1] & 0xF6 != 0xF0 or (head[2] >> 2) & 0xF > 12:
        return 0
    size = (head[3] & 3) << 11 | head[4] << 3 | head[5] >> 5
    return size if size > 7 else 0


def _mp3_frame(head: bytes) -> int:
    """Bytes of the MPEG audio frame (layer 2 or 3) at the start of `head`, 0 when there is none."""
    if len(head) < 4 or head[0] != 0xFF or head[1] & 0xE0 != 0xE0:
        return 0
    version, layer = (head[1] >> 3) & 3, (head[1] >> 1) & 3
    bits, rate = head[2] >> 4, (head[2] >> 2) & 3
    if version == 1 or layer not in (1, 2) or bits in (0, 15) or rate == 3:
        return 0
    hertz = (44100, 48000, 32000)[rate] >> {3: 0, 2: 1, 0: 2}[version]
    if version == 3:
        kilobits = _BITS_1_LAYER_3[bits] if layer == 1 else _BITS_1_LAYER_2[bits]
    else:
        kilobits = _BITS_2[bits]
    samples = 576 if layer == 1 and version != 3 else 1152
    return samples // 8 * kilobits * 1000 // hertz + ((head[2] >> 1) & 1)


_BITS_1_LAYER_3 = (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320)
_BITS_1_LAYER_2 = (0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384)
_BITS_2 = (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160)


def _what_else(head: bytes) -> str:
    """One line on what a file is that is not media."""
    for entry in _TABLE["other_files"]:
        if head.startswith(bytes.fromhex(entry["starts"])):
            return f"{entry['is']} is not media"
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    for entry in _TABLE["references"]:
        if re.match(entry["matches"].encode(), text, re.IGNORECASE):
            return str(entry["reason"])
    for entry in _TABLE["markup"] if text.startswith(b"<") else ():
        if re.search(entry["contains"].encode(), text, re.IGNORECASE):
            return str(entry["reason"])
    if not head.strip(b"\x00"):
        return "the file begins with nothing but zero bytes"
    if all(byte >= 32 or byte in b"\t\n\r\f\x1b" for byte in head):
        return "a text file is not media"
    return "not a video, sound or picture format that wordreel opens"


_ODD = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


@dataclass(frozen=True)
class OpenFile:
    """A regular file held open by descriptor, and the container its first bytes show."""

    descriptor: int
    size: int
    container: Container

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self.descriptor)


def open_media(path: Path, limits: Limits) -> OpenFile:
    """Open `path` if it is a regular file of an allow-listed container. Links are followed.

    The type is checked before opening (a pipe would wait for a writer, a tape would rewind) and again
    after it, of the descriptor itself, in case the path was swapped in between.
    """
    try:
        _only_regular(path.stat().st_mode)
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
        descriptor = os.open(path, flags)
    except ValueError as error:
        raise NotMedia("the path has a zero byte in it") from error
    except OSError as error:
        raise BrokenMedia(f"cannot be opened: {(error.strerror or 'unknown error').lower()}") from error
    try:
        status = os.fstat(descriptor)
        _only_regular(status.st_mode)
        if status.st_size == 0:
            raise BrokenMedia("the file is empty")
        if status.st_size > limits.file_bytes:
            raise OverLimit(
                f"{status.st_size / 2**30:.1f} GiB is over the limit of {limits.file_bytes / 2**30:.1f} GiB"
            )
        return OpenFile(descriptor, status.st_size, sniff(_head(descriptor)))
    except BaseException:
        os.close(descriptor)
        raise


def _head(descriptor: int) -> bytes:
    try:
        return os.pread(descriptor, HEAD, 0)
    except OSError as error:
        raise BrokenMedia(f"cannot be read: {(error.strerror or 'unknown error').lower()}") from error


def _only_regular(mode: int) -> None:
    if stat.S_ISREG(mode):
        return
    what = next((name for test, name in _ODD if test(mode)), "not a regular file")
    raise NotMedia(f"{what} is not media")
