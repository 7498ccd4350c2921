"""Files nobody should trust, made on the spot: small on disk, large in their claims.

`make_hostile` writes files that must all be refused with a `MediaError`; `make_odd_but_fine` writes files
that look wrong and are good media all the same.
"""

from __future__ import annotations

import io
import os
import random
import socket
import struct
import zipfile
import zlib
from pathlib import Path

import numpy as np
from tests.media import make

SIDE = 40_000
_FTYP = b"\x00\x00\x00\x10ftypisom\x00\x00\x00\x00"


def make_hostile(folder: Path) -> dict[str, Path]:
    """Write the hostile files into `folder`; what each is stands in its key."""
    good = make.video(folder / "good_source.mp4", seconds=3.0)
    fast = make.video(folder / "fast_source.mp4", seconds=3.0, options={"movflags": "faststart"})
    mkv = make.video(folder / "source.mkv", seconds=3.0, sound=False)
    files: dict[str, Path] = {}

    def put(key: str, data: bytes, name: str | bytes | None = None) -> None:
        target = os.path.join(os.fsencode(folder), os.fsencode(name or key))  # noqa: PTH118 - raw bytes
        with open(target, "wb") as out:  # noqa: PTH123 - raw bytes
            out.write(data)
        files[key] = Path(os.fsdecode(target))

    _cut_and_bent(put, good.read_bytes(), fast.read_bytes(), mkv.read_bytes())
    _pointers(put, good.read_bytes())
    _strangers(put)
    _too_large(put, folder, files)
    _hollow(put)
    _not_files(folder, files)
    _names(put)
    late = make.video(folder / "frame_at_500000_seconds.mkv", stamps=[0.0, 0.1, 500_000.0], sound=False)
    files["frame_at_500000_seconds.mkv"] = late
    for source in (good, fast, mkv):
        source.unlink()
    return files


def make_odd_but_fine(folder: Path) -> dict[str, Path]:
    """Good media in strange clothes; each has at least one frame or sample that decodes."""
    good = make.video(folder / "good.mp4", seconds=3.0).read_bytes()
    fast = make.video(folder / "fast.mp4", seconds=6.0, options={"movflags": "faststart"}).read_bytes()
    files = {}
    for key, data in {
        "video.txt": good,
        "no_extension": good,
        "trailing_garbage.mp4": good + random.Random(1).randbytes(5000),
        "cut_in_half_moov_first.mp4": fast[: len(fast) // 2],
        "cut.mkv": make.video(folder / "a.mkv", seconds=6.0).read_bytes()[:30_000],
        "cut.avi": make.video(folder / "a.avi", seconds=6.0).read_bytes()[:60_000],
        "cut.ts": make.video(folder / "a.ts", seconds=6.0).read_bytes()[:100_000],
        "gif_named.mp4": make.video(folder / "a.gif").read_bytes(),
        "png_named.mp4": make.still(folder / "a.png").read_bytes(),
        "new\nline.mp4": good,
        "-leading-dash.mp4": good,
        "..mp4": good,
        "wav_size_unknown.wav": _wav(size=0xFFFFFFFF),
        "wav_size_lies.wav": _wav(size=500_000),
    }.items():
        (folder / key).write_bytes(data)
        files[key] = folder / key
    raw = os.path.join(os.fsencode(folder), b"caf\xe9\xff.mp4")  # noqa: PTH118 - not text
    with open(raw, "wb") as out:  # noqa: PTH123 - not text
        out.write(good)
    files["not_utf8.mp4"] = Path(os.fsdecode(raw))
    link = folder / "link.mp4"
    link.symlink_to(folder / "good.mp4")
    files["link.mp4"] = link
    return files


def _cut_and_bent(put, good: bytes, fast: bytes, mkv: bytes) -> None:
    noise = random.Random(7)
    for percent in (1, 10, 50, 90):
        put(f"cut_at_{percent}_moov_last.mp4", good[: len(good) * percent // 100])
    moov = fast.index(b"moov")
    moov_end = moov - 4 + int.from_bytes(fast[moov - 4 : moov], "big")
    put("cut_inside_moov_first.mp4", fast[: moov + 400])
    put("cut_after_moov_first.mp4", fast[: moov_end + 16])
    put("no_moov.mp4", good.replace(b"moov", b"junk"))
    put("cut_header.mkv", mkv[:300])
    put(
        "shuffled.mp4",
        good[:32] + bytes(b ^ noise.randrange(256) * (noise.random() < 0.3) for b in good[32:]),
    )
    put("random.mp4", noise.randbytes(50_000))
    put("random_after_ftyp.mp4", good[:32] + noise.randbytes(50_000))
    put("random_after_ebml.mkv", mkv[:40] + noise.randbytes(50_000))
    put("random_after_riff.avi", b"RIFF\x00\x10\x00\x00AVI " + noise.randbytes(50_000))
    put("random_after_ogg.ogg", b"OggS\x00\x02" + noise.randbytes(50_000))
    put("random_after_flv.flv", b"FLV\x01\x05\x00\x00\x00\x09\x00\x00\x00\x00" + noise.randbytes(50_000))
    put("all_frames_gone.mp4", _blank_mdat(good))
    put("box_claims_10_gb.mp4", good[:32] + struct.pack(">I4sQ", 1, b"mdat", 10 * 2**30) + bytes(64))
    put("boxes_30000_deep.mp4", good[:32] + b"".join(_open(b"moov", 8 * i) for i in range(30_000, 0, -1)))
    put("samples_claim_4_billion.mp4", _bend(good, b"stsz", 8, struct.pack(">II", 0, 0xFFFFFFF0)))


def _pointers(put, good: bytes) -> None:
    hls = b"#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\nfile:///etc/passwd\n#EXT-X-ENDLIST\n"
    put("playlist.m3u8", hls)
    put("playlist_as.mp4", hls)
    put("concat.ffconcat", b"ffconcat version 1.0\nfile '/etc/passwd'\n")
    put("concat_as.mkv", b"file 'good_source.mp4'\nfile '/etc/passwd'\n")
    put("dash.mpd", b'<?xml version="1.0"?>\n<MPD xmlns="urn:mpeg:dash:schema:mpd:2011"></MPD>')
    put("session.sdp", b"v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=x\r\nm=video 5004 RTP/AVP 96\r\n")
    put("list.pls", b"[playlist]\nFile1=http://127.0.0.1/x.mp4\n")
    put("data_in_another_file.mov", _external(good))
    put("pattern_%03d.png", b"not a picture")


def _strangers(put) -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as out:
        out.writestr("a.mp4", b"x" * 100)
    put("zip_as.mp4", archive.getvalue())
    put("text_as.mp4", b"These are only words, not a film.\n" * 50)
    put("program_as.mp4", b"MZ\x90\x00" + bytes(500))
    put("page_as.mp4", b"<!DOCTYPE html><html><video src='x.mp4'></video></html>")
    put("drawing.svg", b"<svg xmlns='http://www.w3.org/2000/svg'><image href='file:///etc/passwd'/></svg>")
    put("document_as.mp4", b"%PDF-1.7\n" + bytes(200))
    put("empty.mp4", b"")
    put("one_byte.mp4", b"\x00")


def _too_large(put, folder: Path, files: dict[str, Path]) -> None:
    for key, head in (
        ("sparse_10_gb.mp4", b""),
        ("sparse_10_gb_ftyp.mp4", b"\x00\x00\x00\x10ftypisom\x00\x00\x00\x00"),
    ):
        with (folder / key).open("wb") as out:
            out.write(head)
            out.truncate(10 * 2**30)
        files[key] = folder / key
    put("header_only_40000.png", _png(SIDE, SIDE, b""))
    squeezer = zlib.compressobj(1)
    row = bytes(1 + SIDE // 8)
    data = b"".join(squeezer.compress(row * 100) for _ in range(SIDE // 100)) + squeezer.flush()
    put("bomb_40000.png", _png(SIDE, SIDE, data))
    gif = make.still(folder / "tiny.gif").read_bytes()
    put("huge.gif", gif[:6] + struct.pack("<HH", 65535, 65535) + gif[10:])
    bmp = make.still(folder / "tiny.bmp").read_bytes()
    put("huge.bmp", bmp[:18] + struct.pack("<ii", SIDE, SIDE) + bmp[26:])
    jpeg = make.still(folder / "tiny.jpg").read_bytes()
    at = jpeg.index(b"\xff\xc0") + 5
    put("huge.jpg", jpeg[:at] + struct.pack(">HH", 65000, 65000) + jpeg[at + 4 :])
    avi = make.video(folder / "tiny.avi", sound=False, codec="rawvideo").read_bytes()
    at = avi.index(b"strf") + 12
    put("huge.avi", avi[:at] + struct.pack("<ii", SIDE, SIDE) + avi[at + 8 :])
    mov = make.video(folder / "tiny.mov", sound=False, codec="mpeg4").read_bytes()
    put("huge.mov", _bend(mov, b"stsd", 44, struct.pack(">HH", SIDE, SIDE)))
    webp = make.still(folder / "tiny.webp").read_bytes()
    at = webp.index(b"VP8 ") + 14
    put("huge.webp", webp[:at] + struct.pack("<HH", 16383, 16383) + webp[at + 4 :])
    put("claims_a_billion_seconds.mkv", _mkv(duration=1e12, track=_VIDEO_TRACK))
    for name in ("tiny.gif", "tiny.bmp", "tiny.jpg", "tiny.avi", "tiny.mov", "tiny.webp"):
        (folder / name).unlink()


def _hollow(put) -> None:
    put("no_streams.mkv", _mkv(duration=1000.0, track=b""))
    put("subtitles_only.mkv", _mkv(duration=1000.0, track=_SUBTITLE_TRACK))
    put(
        "no_tracks.mp4",
        b"\x00\x00\x00\x10ftypisom\x00\x00\x00\x00" + struct.pack(">I4sI4s", 16, b"moov", 8, b"udta"),
    )
    put("cover_art_only.mp3", _id3_picture(_png(1, 1, zlib.compress(bytes(4)))))
    put("header_only.flac", b"fLaC\x80\x00\x00\x22" + bytes(34))
    put("header_only.wav", _wav(size=0)[:44])
    put("no_channels.wav", _wav(channels=0))
    put("no_rate.wav", _wav(rate=0)[:60])
    put("header_only.gif", b"GIF89a\x10\x00\x10\x00\x00\x00\x00;")
    put("header_only.jpg", b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00\xff\xd9")


def _not_files(folder: Path, files: dict[str, Path]) -> None:
    (folder / "folder.mp4").mkdir()
    os.mkfifo(folder / "pipe.mp4")
    (folder / "dangling.mp4").symlink_to(folder / "nowhere.mp4")
    (folder / "loop.mp4").symlink_to(folder / "loop.mp4")
    (folder / "zeros.mp4").symlink_to("/dev/zero")
    (folder / "noise.mp4").symlink_to("/dev/urandom")
    (folder / "itself.mp4").symlink_to("/proc/self/mem")
    files |= {n: folder / n for n in ("folder.mp4", "pipe.mp4", "dangling.mp4", "loop.mp4", "zeros.mp4")}
    files |= {n: folder / n for n in ("noise.mp4", "itself.mp4")}
    files["missing.mp4"] = folder / "was_never_there.mp4"
    files["zero_byte_in_name.mp4"] = Path(f"{folder}/a\x00b.mp4")
    if len(os.fsencode(folder)) < 90:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(folder / "socket.mp4"))
        files["socket.mp4"] = folder / "socket.mp4"


def _names(put) -> None:
    put("newline_in_name", b"words", "a\nb.mp4")
    put("dash_in_front", b"words", "-i.mp4")
    put("not_utf8_name", b"words", b"\xff\xfe\xe9.mp4")
    put("url_as_name", b"words", "http:127.0.0.1.mp4")
    put("dots_as_name", b"words", "...mp4")


def _open(name: bytes, size: int) -> bytes:
    return struct.pack(">I4s", 8 + size, name)


def _blank_mdat(data: bytes) -> bytes:
    at = data.index(b"mdat")
    end = at - 4 + int.from_bytes(data[at - 4 : at], "big")
    return data[: at + 4] + b"\xff" * (end - at - 4) + data[end:]


def _bend(data: bytes, box: bytes, offset: int, value: bytes) -> bytes:
    """Overwrite bytes in every box of a name."""
    parts = bytearray(data)
    at = data.find(box)
    while at >= 0:
        parts[at + offset : at + offset + len(value)] = value
        at = data.find(box, at + 4)
    return bytes(parts)


def _external(data: bytes) -> bytes:
    """The same film, but its samples are said to lie in another file (an `alis` data reference)."""
    path = b"/etc/passwd\x00"
    record = bytes(10) + b"\x01" + bytes(27 + 12) + b"\x01" + bytes(63 + 16) + bytes(4 + 16)
    record += struct.pack(">HH", 2, len(path)) + path + struct.pack(">HH", 0xFFFF, 0)
    alias = struct.pack(">I4sI", 12 + len(record), b"alis", 0) + record
    return _rebuild(data, struct.pack(">II", 0, 1) + alias)


def _rebuild(data: bytes, reference: bytes) -> bytes:
    """Copy boxes one by one, with another body for `dref`."""
    parts, at = [], 0
    while at + 8 <= len(data):
        size, name = struct.unpack_from(">I4s", data, at)
        body = data[at + 8 : at + size]
        if name == b"dref":
            body = reference
        elif name in (b"moov", b"trak", b"mdia", b"minf", b"dinf"):
            body = _rebuild(body, reference)
        parts.append(struct.pack(">I4s", 8 + len(body), name) + body)
        at += max(size, 8)
    return b"".join(parts)


def _png(width: int, height: int, data: bytes) -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def _wav(size: int | None = None, channels: int = 1, rate: int = 8000) -> bytes:
    wave = (8000 * np.sin(np.arange(8000) / 10)).astype("<i2").tobytes()
    size = len(wave) if size is None else size
    head = struct.pack("<HHIIHH", 1, channels, rate, 2 * rate * channels, 2 * channels, 16)
    return b"RIFF\xff\xff\xff\xffWAVEfmt \x10\x00\x00\x00" + head + b"data" + struct.pack("<I", size) + wave


def _id3_picture(image: bytes) -> bytes:
    body = b"\x00image/png\x00\x03\x00" + image
    frame = b"APIC" + struct.pack(">I", len(body)) + b"\x00\x00" + body
    size = bytes((len(frame) >> shift) & 0x7F for shift in (21, 14, 7, 0))
    return b"ID3\x03\x00\x00" + size + frame


def _element(identity: str, body: bytes) -> bytes:
    return bytes.fromhex(identity) + (len(body) | 1 << 56).to_bytes(8, "big") + body


def _track(kind: int, codec: bytes, more: bytes = b"") -> bytes:
    head = _element("D7", b"\x01") + _element("73C5", b"\x01") + _element("83", bytes([kind]))
    return _element("AE", head + _element("86", codec) + more)


_VIDEO_TRACK = _track(1, b"V_MJPEG", _element("E0", _element("B0", b"\x40") + _element("BA", b"\x30")))
_SUBTITLE_TRACK = _track(17, b"S_TEXT/UTF8")


def _mkv(duration: float, track: bytes) -> bytes:
    """A Matroska file of header, length in milliseconds, at most one track, and one block of words."""
    head = _element("1A45DFA3", _element("4282", b"matroska") + _element("4287", b"\x02"))
    info = _element(
        "1549A966", _element("2AD7B1", b"\x0f\x42\x40") + _element("4489", struct.pack(">d", duration))
    )
    cluster = _element("1F43B675", _element("E7", b"\x00") + _element("A3", b"\x81\x00\x00\x80some words"))
    return head + _element("18538067", info + _element("1654AE6B", track) + cluster)
