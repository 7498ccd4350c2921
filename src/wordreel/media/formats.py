"""Open regular files only, and recognise media by their first bytes, never by their name.

Each container wordreel opens is listed here with the demuxer that reads it. That demuxer is then named to the
decoder, so nothing is left to guessing: a playlist or a script that calls itself a film cannot reach a
demuxer that opens other files.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from wordreel.errors import BrokenMedia, NotMedia, OverLimit
from wordreel.media.types import Limits

HEAD = 8192
"""How many of a file's first bytes `sniff` wants to see."""


@dataclass(frozen=True)
class Container:
    """`name` is for people, `demuxer` for the decoder; a picture is one frame without a length."""

    name: str
    demuxer: str
    picture: bool = False


MP4 = Container("mp4", "mov")
MATROSKA = Container("matroska", "matroska")
AVI = Container("avi", "avi")
MPEG_PS = Container("mpeg-ps", "mpeg")
MPEG_TS = Container("mpeg-ts", "mpegts")
MPEG_VIDEO = Container("mpeg", "mpegvideo")
GIF = Container("gif", "gif")
FLV = Container("flv", "flv")
ASF = Container("asf", "asf")
OGG = Container("ogg", "ogg")
MP3 = Container("mp3", "mp3")
WAV = Container("wav", "wav")
FLAC = Container("flac", "flac")
AAC = Container("aac", "aac")
AIFF = Container("aiff", "aiff")
JPEG = Container("jpeg", "jpeg_pipe", picture=True)
PNG = Container("png", "png_pipe", picture=True)
WEBP = Container("webp", "webp_pipe", picture=True)
BMP = Container("bmp", "bmp_pipe", picture=True)
TIFF = Container("tiff", "tiff_pipe", picture=True)

_BOXES = {b"ftyp", b"moov", b"mdat", b"free", b"skip", b"wide", b"pnot"}
_HEIF = {b"heic", b"heix", b"heim", b"heis", b"hevc", b"mif1", b"msf1", b"avif", b"avis"}
_PREFIXES = (
    (b"\x1aE\xdf\xa3", MATROSKA),
    (b"\x00\x00\x01\xba", MPEG_PS),
    (b"\x00\x00\x01\xb3", MPEG_VIDEO),
    (b"GIF87a", GIF),
    (b"GIF89a", GIF),
    (b"FLV\x01", FLV),
    (b"\x30\x26\xb2\x75\x8e\x66\xcf\x11\xa6\xd9\x00\xaa\x00\x62\xce\x6c", ASF),
    (b"OggS", OGG),
    (b"fLaC", FLAC),
    (b"\xff\xd8\xff", JPEG),
    (b"\x89PNG\r\n\x1a\n", PNG),
    (b"II*\x00", TIFF),
    (b"MM\x00*", TIFF),
)
_RIFF = {b"AVI ": AVI, b"AVIX": AVI, b"WAVE": WAV, b"WEBP": WEBP}
_STRANGERS = (
    (b"PK\x03\x04", "a zip archive"),
    (b"PK\x05\x06", "a zip archive"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ\x00", "an xz archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a\x07", "a rar archive"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive"),
    (b"%PDF", "a PDF document"),
    (b"MZ", "a program"),
    (b"\x7fELF", "a program"),
    (b"SQLite format 3\x00", "a database"),
)
_POINTERS = (
    (rb"#EXTM3U", "a playlist (HLS) is not opened: it points at other files"),
    (rb"(#\s*)?ffconcat", "a concat script is not opened: it points at other files"),
    (rb"file\s+['\"]?\S", "a concat script is not opened: it points at other files"),
    (rb"\[playlist\]", "a playlist (PLS) is not opened: it points at other files"),
    (rb"\[(InternetShortcut|Desktop Entry)\]", "a shortcut is not opened: it points at another file"),
    (rb"\[Reference\]", "a playlist (ASX) is not opened: it points at other files"),
    (rb"v=0\s+o=", "a session description (SDP) is not opened: it points at the network"),
    (rb"rtsp(text|://)", "a playlist (RTSP) is not opened: it points at the network"),
    (rb"<asx", "a playlist (ASX) is not opened: it points at other files"),
    (rb"#!", "a script is not media"),
)
_MARKUP = (
    (rb"<MPD[\s>]", "a playlist (DASH) is not opened: it points at other files"),
    (rb"<SmoothStreamingMedia", "a playlist (Smooth Streaming) is not opened: it points at other files"),
    (rb"<smil", "a playlist (SMIL) is not opened: it points at other files"),
    (rb"<playlist", "a playlist (XSPF) is not opened: it points at other files"),
    (rb"<svg[\s>]", "an SVG drawing is not opened: it can point at other files"),
    (rb"<(!doctype\s+)?html", "a web page is not media"),
)


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
    for magic, container in _PREFIXES:
        if head.startswith(magic):
            return container
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
    for magic, what in _STRANGERS:
        if head.startswith(magic):
            return f"{what} is not media"
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    for pattern, reason in _POINTERS:
        if re.match(pattern, text, re.IGNORECASE):
            return reason
    if text.startswith(b"<"):
        for pattern, reason in _MARKUP:
            if re.search(pattern, text, re.IGNORECASE):
                return reason
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
