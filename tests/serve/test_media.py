"""Thumbnails, and the bytes of files in whole and in part."""

import asyncio
import gzip
import hashlib
import os
import re
import shutil
import socket
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.serve.conftest import running, wait

from wordreel.errors import MediaError, NotMedia
from wordreel.media.formats import OpenFile
from wordreel.media.types import MediaInfo
from wordreel.serve.media_files import MediaResponse, media_type_of
from wordreel.serve.thumbnails import DiskCache, Thumbnails


@pytest.fixture
def film(site):
    return site.get("/api/videos?q=film3").json["items"][0]


def test_the_whole_and_parts_of_it(site, film):
    data = Path(film["path"]).read_bytes()
    size, address = len(data), f"/media/{film['content']}"
    whole = site.get(address)
    assert (whole.status, whole.body) == (200, data)
    assert whole.headers["content-type"] == "video/mp4"
    assert whole.headers["accept-ranges"] == "bytes"
    assert "sandbox" in whole.headers["content-security-policy"]
    for asked, start, end in (
        ("bytes=0-0", 0, 1),
        ("bytes=10-99", 10, 100),
        (f"bytes={size - 5}-", size - 5, size),
        ("bytes=-7", size - 7, size),
        (f"bytes=5-{10 * size}", 5, size),
        (f"bytes=-{10 * size}", 0, size),
    ):
        part = site.get(address, Range=asked)
        assert part.status == 206, asked
        assert part.body == data[start:end]
        assert part.headers["content-range"] == f"bytes {start}-{end - 1}/{size}"
        assert part.headers["content-length"] == str(end - start)
    head = site.ask("HEAD", address)
    assert (head.status, head.body, head.headers["content-length"]) == (200, b"", str(size))
    tag = whole.headers["etag"]
    assert site.get(address, **{"If-None-Match": tag}).status == 304
    assert site.get(address, **{"If-Range": tag, "Range": "bytes=0-3"}).status == 206
    assert site.get(address, **{"If-Range": '"other"', "Range": "bytes=0-3"}).status == 200


def test_abuse_of_ranges(site, film):
    size, address = Path(film["path"]).stat().st_size, f"/media/{film['content']}"
    for asked in (
        f"bytes={size}-",
        f"bytes={size}-{size + 5}",
        "bytes=-0",
        "bytes=--1",
        "bytes=99999999999999999999-",
    ):
        answer = site.get(address, Range=asked)
        assert answer.status == 416, asked
        assert answer.headers["content-range"] == f"bytes */{size}"
        assert answer.body == b""
    for asked in (
        "bytes=9-2",
        "bytes=",
        "bytes=a-b",
        "lines=0-1",
        "bytes=0x1-0x5",
        "bytes=" + "9" * 5000 + "-",
    ):
        assert site.get(address, Range=asked).status == 400, asked
    several = site.get(address, Range="bytes=0-1,5-9")
    assert (several.status, several.headers["content-type"].split(";")[0]) == (206, "multipart/byteranges")
    many = "bytes=" + ",".join(f"{n}-{n}" for n in range(1000))
    assert len(site.get(address, Range=many).body) < 2 * size + 500_000


def get_range(header, size):
    """The status and the bytes of a response to a `Range` header."""
    file = OpenFile(os.memfd_create("film"), size, None)
    os.truncate(file.descriptor, size)
    response = MediaResponse(file, MediaInfo("video", "mp4", 1.0), "c" * 64, "film.mp4")
    sent = []

    async def ask():
        async def send(message):
            sent.append(message)

        headers = [(b"range", header.encode())]
        scope = {"type": "http", "method": "GET", "headers": headers, "asgi": {"spec_version": "2.4"}}
        await response(scope, None, send)

    asyncio.run(ask())
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(file.descriptor)
    status, headers = sent[0]["status"], dict(sent[0]["headers"])
    return status, headers, sum(len(message.get("body", b"")) for message in sent[1:])


@given(st.text(alphabet="bytes=-0123456789 x", max_size=30), st.integers(1, 1000))
@settings(deadline=None)
def test_ranges_lie_inside_the_file(header, size):
    status, headers, sent = get_range(header, size)
    if status == 206:
        match = re.fullmatch(rb"bytes ([0-9]+)-([0-9]+)/([0-9]+)", headers[b"content-range"])
        first, last, total = (int(number) for number in match.groups())
        assert 0 <= first <= last < total == size
        assert sent == last + 1 - first
    else:
        assert status in (400, 416) or (status, sent) == (200, size)


def test_pictures_of_moments(site, film):
    import cv2

    thumb = site.get(f"/api/thumb/{film['content']}?t=12")
    assert thumb.headers["content-type"] == "image/jpeg"
    image = cv2.imdecode(np.frombuffer(thumb.body, np.uint8), cv2.IMREAD_COLOR)
    assert image.shape == (48, 64, 3)
    assert site.get(f"/api/thumb/{film['content']}?t=12.04").body == thumb.body
    assert site.get(f"/api/thumb/{film['content']}?t=2").body != thumb.body
    assert site.get(f"/api/thumb/{film['content']}?t=9999").status == 200
    preview = site.get(f"/api/preview/{film['content']}?start=5&end=13")
    assert preview.headers["content-type"] == "image/webp"
    found, animation = cv2.imdecodeanimation(np.frombuffer(preview.body, np.uint8))
    assert found
    assert len(animation.frames) == 8
    assert len({frame.tobytes() for frame in animation.frames}) > 3
    assert site.get(f"/api/preview/{film['content']}?start=9999&end=1").status == 200
    for bad in ("t=-1", "t=nan", "t=x", "t=inf"):
        assert site.get(f"/api/thumb/{film['content']}?{bad}").status == 422


def test_files_that_are_no_longer_what_was_added(ready, library, tmp_path):
    """A path that was swapped for a link to something else gives nothing away."""
    from wordreel.catalogue.store import LibraryStore

    own = tmp_path / "own.mp4"
    secret = tmp_path / "secret.mp4"
    with LibraryStore.open(library) as store:
        film = next(f for f in store.files() if f.path.endswith("film0.mp4"))
        shutil.copy2(film.path, own)
        store.catalogue.run(
            "UPDATE files SET path = ? WHERE path = ?", os.fsencode(own), os.fsencode(film.path)
        )
    data = own.read_bytes()
    with running(library) as site:
        address = f"/media/{film.content}"
        assert site.get(address).body == data
        os.utime(own, ns=(1, 1))  # another time, the same bytes
        assert site.get(address).body == data
        os.utime(own, ns=(1, 1))
        stamp = own.stat()
        own.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))  # other bytes, the same size
        os.utime(own, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))  # and the same time
        assert site.get(address).code == "changed"
        own.write_bytes(data)
        os.utime(own, ns=(stamp.st_atime_ns, film.mtime_ns))  # the time that the catalogue has
        assert site.get(address).body == data
        own.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        os.utime(own, ns=(stamp.st_atime_ns, film.mtime_ns))
        assert site.get(address).code == "changed"
        secret.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))  # the same size, other bytes
        own.unlink()
        own.symlink_to(secret)
        assert site.get(address).code == "gone"
        assert site.get(f"/api/thumb/{film.content}").code == "gone"
        own.unlink()
        own.symlink_to("/etc/passwd")
        assert site.get(address).code == "gone"
        own.unlink()
        assert site.get(address).code == "gone"


@pytest.mark.parametrize(
    "path",
    [
        "/media/../../../../etc/passwd",
        "/media/..%2f..%2f..%2fetc%2fpasswd",
        "/media/%2e%2e%2f%2e%2e%2fetc/passwd",
        "/media//etc/passwd",
        "/api/thumb/..%2f..%2fcatalogue.sqlite",
        "/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/..%5c..%5cetc%5cpasswd",
        "/index.html/../../app.py",
        "/js/../../app.py",
        "/etc/passwd%00.html",
        "/media/" + "a" * 5000,
    ],
)
def test_paths_lead_nowhere_else(site, path):
    answer = site.get(path)
    assert answer.status in (404, 422)
    assert b"root:" not in answer.body
    assert answer.code in ("not_found", "invalid")


def test_types_by_what_is_inside():
    assert media_type_of(MediaInfo("audio", "mp4", 1.0, audio_codec="aac")) == "audio/mp4"
    assert (
        media_type_of(MediaInfo("video", "matroska", 1.0, video_codec="vp9", audio_codec="opus"))
        == "video/webm"
    )
    assert media_type_of(MediaInfo("video", "matroska", 1.0, video_codec="h264")) == "video/x-matroska"
    assert media_type_of(MediaInfo("video", "flv", 1.0)) == "application/octet-stream"


def test_the_cache_of_pictures_is_bounded(tmp_path):
    cache = DiskCache(tmp_path, 1000)
    made = []

    def make():
        made.append(1)
        return bytes(100)

    for number in range(30):
        cache.get(str(number), make)
        held = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert sum(path.stat().st_size for path in held) <= 1000
    cache.get("29", make)
    assert len(made) == 30

    def fail():
        raise NotMedia("no")

    for _ in range(2):
        with pytest.raises(MediaError):
            cache.get("bad", fail)


def test_the_page_is_compressed_and_asked_for_once(site):
    plain = site.get("/js/api.js")
    assert plain.headers["content-type"] == "text/javascript; charset=utf-8"
    assert plain.headers["cache-control"] == "no-cache"
    packed = site.get("/js/api.js", **{"Accept-Encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body
    tag = plain.headers["etag"]
    assert tag == f'"{hashlib.sha256(plain.body).hexdigest()[:32]}"'
    again = site.get("/js/api.js", **{"If-None-Match": tag})
    assert (again.status, again.body) == (304, b"")
    assert site.get("/").body == site.get("/index.html").body
    assert site.ask("HEAD", "/").headers["content-length"] == str(len(site.get("/").body))
    assert site.post("/js/api.js").code == "method_not_allowed"


def test_playback_and_search_do_not_wait_for_thumbnails(site, film, monkeypatch):
    """Thumbnails have threads of their own."""
    made, release = [], threading.Event()

    def slow(self, content, path, second, duration, size):
        made.append(second)
        release.wait(120)
        return b"picture"

    monkeypatch.setattr(Thumbnails, "thumb", slow)
    held = []
    for number in range(72):
        connection = socket.create_connection(("127.0.0.1", site.port), timeout=60)
        head = f"GET /api/thumb/{film['content']}?t={number} HTTP/1.1\r\nHost: localhost\r\n\r\n"
        connection.sendall(head.encode())
        held.append(connection)
    wait(lambda: made)
    for path in (f"/media/{film['content']}", "/api/search?text=red", f"/api/videos/{film['content']}"):
        assert site.get(path, Range="bytes=0-99").status in (200, 206), path
    for connection in held:
        connection.close()
    release.set()
    assert site.get(f"/api/thumb/{film['content']}?t=3").body == b"picture"  # queued behind all of them
