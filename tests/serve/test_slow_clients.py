"""Clients that take their time: what they hold is taken back from them."""

import asyncio
import json
import os
import shutil
import socket
import time
from pathlib import Path

import anyio
import pytest
from tests.serve.conftest import running, wait

from wordreel.library import LibraryStore
from wordreel.serve import slow_clients
from wordreel.serve.bounded_executor import BoundedExecutor
from wordreel.serve.jobs.queue import JobStopped
from wordreel.serve.media_response import MediaResponse

LARGE = 48 * 2**20  # bytes: more than the buffers between two sockets


@pytest.fixture
def large(library, tmp_path):
    """The content of a film with a long tail that no player minds."""
    own = tmp_path / "large.mp4"
    with LibraryStore.open(library) as store:
        film = next(file for file in store.files() if file.path.endswith("film0.mp4"))
        shutil.copyfile(film.path, own)
        os.truncate(own, LARGE)
        stat = own.stat()
        store.catalogue.run(
            "UPDATE files SET path = ?, size = ?, mtime_ns = ?, ctime_ns = ?, inode = ? WHERE path = ?",
            os.fsencode(own),
            stat.st_size,
            stat.st_mtime_ns,
            stat.st_ctime_ns,
            stat.st_ino,
            os.fsencode(film.path),
        )
    return film.content, own


def held_open(path):
    """How often this process, which the server is in, has the file open."""
    found = 0
    for link in Path("/proc/self/fd").iterdir():
        try:
            found += link.readlink() == path
        except OSError:
            continue
    return found


def connections(port):
    """The server's ends of connections to it, whatever their state."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]]
    return sum(row[1] == f"0100007F:{port:04X}" and row[3] == "01" for row in rows)  # 01: established


def reader(site, content, buffer=4096):
    connection = socket.socket()
    connection.settimeout(60)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    connection.connect(("127.0.0.1", site.port))
    connection.sendall(f"GET /media/{content} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    assert connection.recv(12) == b"HTTP/1.1 200"
    return connection


def test_a_reader_that_stops_reading_is_let_go(library, large):
    content, path = large
    with running(library, timeout=1.0) as site:
        held = [reader(site, content) for _ in range(5)]
        wait(lambda: held_open(path) == 5)
        assert site.get("/api/search?text=red").status == 200
        wait(lambda: held_open(path) == 0)
        wait(lambda: connections(site.port) == 0)
        for connection in held:
            connection.close()


def test_a_reader_that_reads_gets_everything(library, large):
    content, path = large
    with running(library, timeout=2.0) as site:
        connection, got = reader(site, content, 2**20), 12
        began = time.monotonic()
        while got < LARGE:  # slowly enough to outlast the timeout, steadily enough to keep it
            block = connection.recv(2**20)
            assert block, "let go in the middle"
            got += len(block)
            if time.monotonic() - began < 3.0:
                time.sleep(0.2)
        assert time.monotonic() - began > 2.5
        connection.close()
        wait(lambda: held_open(path) == 0)


def test_what_nobody_waits_for_is_not_read(library, large, monkeypatch):
    content, path = large
    read = []
    monkeypatch.setattr(MediaResponse, "chunk_size", 16 * 1024)
    real = anyio.AsyncFile.read
    monkeypatch.setattr(anyio.AsyncFile, "read", lambda *given: read.append(1) or real(*given))
    with running(library) as site:
        reader(site, content).close()  # as a player does that seeks
        wait(lambda: held_open(path) == 0)
        assert 0 < len(read) < LARGE / (16 * 1024) / 2


def test_a_listener_that_stops_listening_is_let_go(library, tmp_path):
    def loud(kind, request, tell, stop):
        for number in range(10_000):
            if stop.wait(0.02):
                raise JobStopped
            tell({"step": "talking", "done": number, "total": 10_000, "words": "x" * 500_000})

    with running(library, loud, roots=(tmp_path,), timeout=3.0) as site:
        job = site.post("/api/folders", {"path": str(tmp_path)}).json["job"]
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", site.port))
        connection.sendall(f"GET /api/jobs/{job['id']}/events HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        wait(lambda: site.service.listeners == 1)
        wait(lambda: site.service.listeners == 0)
        wait(lambda: connections(site.port) == 0)
        assert site.get(f"/api/jobs/{job['id']}").json["job"]["state"] == "running"
        connection.close()


@pytest.mark.parametrize("path", ["/api/search", "/api/uploads?name=a.mp4"])
def test_a_body_that_trickles_in_is_refused(library, path):
    with running(library, timeout=1.0) as site:
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        began = time.monotonic()
        with socket.create_connection(("127.0.0.1", site.port), timeout=60) as connection:
            connection.sendall(f"{head}Content-Length: 1000\r\n\r\n".encode())
            found = b""
            connection.settimeout(0.1)
            while not found:
                assert time.monotonic() - began < 60, "it may go on like this"
                try:
                    connection.sendall(b" ")
                    found = connection.recv(4096)
                except TimeoutError:
                    continue
        assert b" 408 " in found
        assert not list((library / "uploads").glob("*"))


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/search", {"text": "a red car"}),
        ("/api/search?text=a+red+car", None),
        ("/api/videos/{content}/captions", {"captions": ["a red car"]}),
    ],
)
def test_a_query_is_dropped_when_its_client_disconnects(site, monkeypatch, path, body):
    """What waits for an answer is cancelled."""
    outcomes = []
    content = site.get("/api/videos").json["items"][0]["content"]

    answered = BoundedExecutor.__call__

    async def stuck(pool, *work):
        if outcomes:
            return await answered(pool, *work)
        try:
            outcomes.append("began")
            await asyncio.sleep(300)
        except asyncio.CancelledError:
            outcomes.append("cancelled")
            raise

    monkeypatch.setattr(BoundedExecutor, "__call__", stuck)
    data = b"" if body is None else json.dumps(body).encode()
    method = "GET" if body is None else "POST"
    head = f"{method} {path.format(content=content)} HTTP/1.1\r\nHost: localhost\r\n"
    if data:
        head += f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n"
    with socket.create_connection(("127.0.0.1", site.port), timeout=60) as connection:
        connection.sendall(head.encode() + b"\r\n" + data[:5])
        time.sleep(0.1)  # a body in two parts
        connection.sendall(data[5:])
        wait(lambda: outcomes == ["began"])
    wait(lambda: outcomes == ["began", "cancelled"])
    wait(lambda: b'status="499"' in site.get("/metrics").body)
    assert b'status="500"' not in site.get("/metrics").body


def test_a_change_runs_to_its_end_without_its_client(library, tmp_path, monkeypatch):
    put, began, gone = [], [], []
    with running(library, roots=(tmp_path,)) as site:
        real = site.service.jobs.put

        def slow(*given):
            began.append(True)
            wait(lambda: gone)
            put.append(real(*given))
            return put[0]

        monkeypatch.setattr(site.service.jobs, "put", slow)
        data = json.dumps({"path": str(tmp_path)}).encode()
        head = "POST /api/folders HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        with socket.create_connection(("127.0.0.1", site.port), timeout=60) as connection:
            connection.sendall(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)
            wait(lambda: began)
        gone.append(True)
        wait(lambda: len(put) == 1)


def test_clients_that_leave_are_not_errors(library, large, caplog):
    """Nothing in the log of the server: "ASGI callable returned without completing response"."""
    content, path = large
    with running(library, timeout=1.0) as site:
        for address in (
            f"/media/{content}",
            f"/api/thumb/{content}?t=1",
            "/api/search?text=red",
            "/api/jobs",
        ):
            for wait_for_answer in (True, False):
                connection = socket.create_connection(("127.0.0.1", site.port), timeout=60)
                connection.sendall(f"GET {address} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
                if wait_for_answer:
                    connection.recv(100)
                connection.close()
        stalled = reader(site, content)
        wait(lambda: held_open(path) == 0)
        stalled.close()
        wait(lambda: connections(site.port) == 0)
    assert not [record for record in caplog.records if record.name.startswith("uvicorn")]


def test_a_burst_of_connections_is_answered(library, monkeypatch):
    """Those that are pushed out before their first request was read are told why, not only closed."""
    monkeypatch.setattr(slow_clients, "MAX_IDLE", 3)
    with running(library) as site:
        crowd = [socket.create_connection(("127.0.0.1", site.port), timeout=60) for _ in range(5)]
        for connection in crowd[:2]:
            head, _, body = connection.recv(4096).partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 503")
            assert b"retry-after: 1" in head
            assert json.loads(body)["error"]["code"] == "too_busy"
        crowd[4].sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert crowd[4].recv(4096).startswith(b"HTTP/1.1 200")
        for connection in crowd:
            connection.close()
