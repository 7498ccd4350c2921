"""Clients that are slow, loud or wrong."""

import http.client
import json
import socket
import threading
import time

import pytest
from tests.serve.conftest import running, wait


def raw(site, data, timeout=60.0):
    """Send bytes as they are, and what comes back until the server closes (or the time is up)."""
    with socket.create_connection(("127.0.0.1", site.port), timeout=timeout) as connection:
        connection.sendall(data)
        found = b""
        try:
            while block := connection.recv(65536):
                found += block
        except TimeoutError:
            return found, False
        return found, True


def test_bodies_that_are_too_large(library):
    with running(library, max_json=10_000, max_upload=50_000) as site:
        answer = site.post("/api/search", {"text": "x" * 20_000})
        assert (answer.status, answer.code) == (413, "too_large")
        assert site.post("/api/uploads?name=a.mp4", bytes(60_000)).code == "too_large"
        head = b"POST /api/uploads HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        chunk = b"2710\r\n" + bytes(10_000) + b"\r\n"
        found, closed = raw(site, head + 6 * chunk)
        assert b" 413 " in found
        assert closed
        assert not list((library / "uploads").glob("*"))
        lie = b"POST /api/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        assert b" 413 " in raw(site, lie + b"Content-Length: 99999999999999\r\n\r\n")[0]
        assert site.get("/healthz").status == 200


def test_idle_connections_are_kept_open(site):
    """As browsers do: several requests on one connection."""
    connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=60)
    for _ in range(3):
        connection.request("GET", "/healthz")
        answer = connection.getresponse()
        assert (answer.status, answer.read()) == (200, b'{"ok":true}')
        time.sleep(0.1)
    connection.close()


def test_too_many_requests_at_once_are_refused(library, monkeypatch):
    monkeypatch.setattr("wordreel.serve.app.MAX_REQUESTS", 5)
    with running(library) as site:
        held = [socket.create_connection(("127.0.0.1", site.port)) for _ in range(5)]
        wait(lambda: site.get("/healthz").status == 503)
        for connection in held:
            connection.close()
        wait(lambda: site.get("/healthz").status == 200)


def test_slow_readers_do_not_hold_up_others(library):
    with running(library) as site:
        content = site.get("/api/videos?q=film3").json["items"][0]["content"]
        held = []
        for _ in range(20):
            connection = socket.create_connection(("127.0.0.1", site.port))
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            connection.sendall(f"GET /media/{content} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            held.append(connection)
        assert site.get("/api/search?text=red").status == 200
        for connection in held:
            connection.close()


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("text/plain", b'{"text": "red"}'),
        ("application/x-www-form-urlencoded", b"text=red"),
        ("multipart/form-data; boundary=x", b"--x--"),
        ("text/html", b"<script>"),
        ("", b'{"text": "red"}'),
    ],
)
def test_wrong_content_types(site, kind, body):
    answer = site.ask("POST", "/api/search", body, {"Content-Type": kind})
    assert (answer.status, answer.code) == (415, "wrong_type")


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\xff\xfe\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        b"POST /api/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        b"POST /api/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhi",
        b"POST /api/search HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nZZZ\r\n",
        b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
    ],
)
def test_broken_requests_break_nothing(site, data):
    found, _ = raw(site, data, 1.0)
    assert b" 200 OK" not in found.split(b"\r\n")[0]
    assert b" 500 " not in found
    assert site.get("/healthz").status == 200


def test_uploads_are_known_by_their_bytes(site, library):
    for body in (
        b"<script>alert(1)</script>",
        b"#!/bin/sh\n",
        b"PK\x03\x04" + bytes(100),
        b"\x00" * 1000,
        b"\xff\xd8\xff\xe0",
    ):
        answer = site.post("/api/uploads?name=film.mp4", body, {"Content-Type": "video/mp4"})
        assert answer.status in (415, 422), body[:10]
        assert answer.code in ("not_media", "broken_media")
    assert site.post("/api/uploads?name=film.mp4", b"").code == "empty"
    assert not list((library / "uploads").glob("*"))
    assert site.get("/api/jobs").json["jobs"] == []


def test_a_client_that_goes_away_leaves_nothing(site, library):
    head = b"POST /api/uploads?name=a.mp4 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n"
    with socket.create_connection(("127.0.0.1", site.port)) as connection:
        connection.sendall(head + bytes(5000))
        time.sleep(0.3)
    wait(lambda: not list((library / "uploads").glob("*")))


def test_many_at_once(site):
    """Sixty-four clients get the answers that one gets."""
    words = [f"{a} {b}" for a in ("red", "green", "blue", "dogs") for b in ("red", "sea", "blue", "car")]
    alone = {text: hits(site, text) for text in words}
    found: list[bool] = []

    def client(number):
        for step in range(3):
            text = words[(number + step) % len(words)]
            found.append(hits(site, text) == alone[text])

    threads = [threading.Thread(target=client, args=(n,)) for n in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(found) == 192
    assert all(found)
    metrics = site.get("/metrics").body.decode()
    assert 'wordreel_requests_total{method="GET",route="/api/search",status="200"} 208' in metrics


def hits(site, text):
    return json.dumps(site.get(f"/api/search?text={text.replace(' ', '+')}").json["hits"])


def test_parallel_picture_queries_leave_each_other_alone(site, monkeypatch):
    """More uploads at once than are kept: none may delete what another is still writing."""
    monkeypatch.setattr(site.service.uploads, "_max_queries", 2)
    content = site.get("/api/videos").json["items"][0]["content"]
    pictures = [site.get(f"/api/thumb/{content}?t={second}").body for second in range(3)]
    codes: list[int] = []

    def client(number):
        for step in range(10):
            picture = pictures[(number + step) % len(pictures)] + bytes([number, step])
            codes.append(site.post("/api/uploads?purpose=query", picture).status)

    threads = [threading.Thread(target=client, args=(number,)) for number in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert codes == [202] * 90
