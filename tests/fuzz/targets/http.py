"""Raw bytes at the server's socket: the parser, queries and JSON of every route, forms and ranges.

Whatever is sent, the server answers in its own shape or closes the connection, logs no error, and lives on.
"""

from __future__ import annotations

import json
import logging
import socket
import threading
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from tests.example_library import ColourModel
from tests.fakes import Colour, FakeFence, Talk, write_media
from tests.fuzz.engine import Broken, Session, Target
from tests.fuzz.mutations import WORDS, mutate_bytes, mutate_json, mutate_text

from wordreel.errors import BrokenMedia

LONGEST_WAIT = 300.0  # seconds of the clock, of which a loaded machine may give the server few
NO_HTTP = b"Invalid HTTP request received."  # what uvicorn itself says, before there is a request
SHAPE = {"code", "message", "field", "next_step"}
HOST = b"Host: localhost\r\nX-Wordreel: 1\r\nConnection: close\r\n"
FORM = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.mp4"\r\n\r\nhello\r\n--x--\r\n'
TOKENS = (
    *WORDS, b"%00", b"%ff", b"%2e%2e%2f", b"&limit=-1", b"&limit=1e9", b"?t=nan", b"bytes=0-", b"bytes=-0",
    b"bytes=9-1", b"bytes=0-0,2-3", b"\r\nContent-Length: 5", b"\r\nTransfer-Encoding: chunked", b"HTTP/1.0",
    b"\r\nExpect: 100-continue", b"\r\nHost: evil.example", b"\r\nOrigin: http://evil.example",
    b"\r\nRange: bytes=1-", b"\r\nCookie: wordreel=x",
    b"\r\nContent-Type: application/json", b"OPTIONS", b"PUT", b"HEAD", b"TRACE",
)  # fmt: skip


class Errors(logging.Handler):
    """What the server logs that it should not have to."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


def requests(content: str) -> list[bytes]:
    """One good request for every route, and some that are odd and good."""
    paths = [
        "/", "/healthz", "/metrics", "/api/status", "/api/openapi.json", "/api/search?text=red&limit=2",
        "/api/search?text=red&then=blue", f"/api/search?like={content}&second=1",
        "/api/search?text=red&compare=true",
        "/api/videos?limit=2&q=sea", f"/api/videos/{content}", f"/api/videos/{content}/match?text=red",
        f"/api/videos/{content}/captions", "/api/failures",
        "/api/jobs", "/api/jobs/1", "/api/banks", "/api/settings", "/api/hubness?norm=none", "/api/models",
        f"/api/thumb/{content}?t=1", f"/api/preview/{content}?start=0&end=1", f"/media/{content}",
    ]  # fmt: skip
    made = [f"GET {path} HTTP/1.1\r\n".encode() + HOST + b"\r\n" for path in paths]
    made.append(f"GET /media/{content} HTTP/1.1\r\n".encode() + HOST + b"Range: bytes=0-9\r\n\r\n")
    made.append(f"HEAD /media/{content} HTTP/1.1\r\n".encode() + HOST + b"\r\n")
    bodies: dict[str, Any] = {
        "POST /api/search": {"text": "red", "limit": 2, "filters": {"kind": "video", "min_duration": 1}},
        f"POST /api/videos/{content}/captions": {"captions": ["a red film", "the sea"]},
        "POST /api/folders": {"path": "/nowhere"},
        "POST /api/banks": {"name": "b", "source": {"texts": ["red", "blue"]}},
        "POST /api/banks/b/check": {"captions": {"a": ["red"]}},
        "PUT /api/settings": {"log_queries": False},
        "POST /api/models": {"name": "joint"},
        "POST /api/login": {"token": "x"},
        "DELETE /api/banks/none": None,
        "DELETE /api/jobs/1": None,
        "DELETE /api/videos/" + "0" * 64: None,
    }  # fmt: skip
    for line, body in bodies.items():
        made.append(
            whole(f"{line} HTTP/1.1\r\n".encode() + HOST, b"" if body is None else json.dumps(body).encode())
        )
    made.append(
        whole(b"POST /api/uploads HTTP/1.1\r\nContent-Type: multipart/form-data; boundary=x\r\n" + HOST, FORM)
    )
    return made


def whole(head: bytes, body: bytes) -> bytes:
    """A request whose length is right."""
    kind = b"" if b"Content-Type" in head else b"Content-Type: application/json\r\n"
    return head + kind + b"Content-Length: %d\r\n\r\n" % len(body) + body


def mutate(rng: Random, data: bytes, corpus: Sequence[bytes]) -> bytes:
    """Change the body with its length put right, the address, or any bytes."""
    head, blank, body = data.partition(b"\r\n\r\n")
    kind = rng.randrange(4)
    if kind == 0 or not blank:
        return mutate_bytes(rng, data, corpus, TOKENS)
    if kind == 1 and body:
        changed = mutate_json(rng, body, ()) if body[:1] in b"{[" else mutate_bytes(rng, body, (), TOKENS)
        lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"content-length")]
        return b"\r\n".join(lines) + b"\r\nContent-Length: %d\r\n\r\n" % len(changed) + changed
    first, _, rest = head.partition(b"\r\n")
    if kind == 2:
        return mutate_text(rng, first, (), TOKENS).replace(b"\n", b"") + b"\r\n" + rest + blank + body
    return first + b"\r\n" + mutate_text(rng, rest, (), TOKENS) + blank + body


def no_pictures(path: Path, request: object) -> object:
    raise BrokenMedia("these films are made up")


def http_session(folder: Path) -> Session:
    from wordreel.catalogue.store import LibraryStore
    from wordreel.embed.embed_library import embed_library
    from wordreel.ingest.add import add
    from wordreel.ingest.extract import extract_file
    from wordreel.library import Library
    from wordreel.serve.app import build_server
    from wordreel.serve.options import Options
    from wordreel.serve.service import Service

    films = folder / "films"
    for name, seed in (("sea", 4060), ("meadow", 482)):
        write_media(films / f"{name}.mp4", seconds=30.0, seed=seed)
    with LibraryStore.create_or_open(folder / "library") as store:
        add(store, [films], [Colour(), Talk()], FakeFence())
        embed_library(store, ColourModel())
        content = store.videos()[0].content
    fence = FakeFence()
    fence.close = lambda: None  # type: ignore[attr-defined]
    fence.run = no_pictures  # type: ignore[attr-defined]
    library = Library(folder / "library", model=ColourModel())
    options = Options(port=0, roots=(films,), timeout=20.0, max_json=1 << 16, max_upload=1 << 20)
    service = Service(
        library,
        options,
        job_runner=lambda kind, request, tell, stop: {},
        fence=fence,
        analyse=lambda file, model: extract_file(file, [Colour(), Talk()], fence),
    )
    server = build_server(service)
    listening = server.config.bind_socket()
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    address = ("127.0.0.1", listening.getsockname()[1])
    errors = Errors()
    for name in ("uvicorn.error", "wordreel.serve", "asyncio"):
        logging.getLogger(name).addHandler(errors)
    while not server.started:
        thread.join(0.01)
    if exchange(address, b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n")[:12] != b"HTTP/1.1 200":
        raise Broken("the server does not start")

    def run(data: bytes) -> None:
        errors.lines.clear()
        check_answer(exchange(address, data))
        if errors.lines:
            raise Broken(f"the server logs {errors.lines[0][:2000]}")
        if not thread.is_alive():
            raise Broken("the server is gone")

    def close() -> None:
        server.should_exit = True
        thread.join(30)
        library.store.close()
        if thread.is_alive():
            raise Broken("the server does not stop")

    return Session(requests(content), run, mutate, close)


def exchange(address: tuple[str, int], data: bytes) -> bytes:
    """Everything the server says until it closes; no more is sent after `data`."""
    with socket.create_connection(address, timeout=LONGEST_WAIT) as connection:
        answer = b""
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            while part := connection.recv(1 << 16):
                answer += part
        except (ConnectionError, BrokenPipeError):
            pass  # it may close before it has read all
        except TimeoutError:
            raise Broken(f"neither an answer nor an end in {LONGEST_WAIT:g} seconds") from None
        return answer


def check_answer(answer: bytes) -> None:
    """Each response: a status below 500 or 503 or 507, errors in the one shape or uvicorn's own."""
    head, _, body = answer.partition(b"\r\n\r\n")
    if not answer:
        return
    if not head.startswith(b"HTTP/1."):
        raise Broken(f"not HTTP: {answer[:80]!r}")
    status = int(head[9:12])
    if status >= 500 and status not in (503, 507):
        raise Broken(f"{status}: {body[:300]!r}")
    if status >= 400 and body.startswith(b"{"):
        error = json.JSONDecoder().raw_decode(body.decode())[0]
        if set(error) != {"error"} or set(error["error"]) != SHAPE or not error["error"]["message"]:
            raise Broken(f"an error of another shape: {body[:300]!r}")
    elif status >= 400 and body and not body.startswith(b"HTTP/1.") and (status, body) != (400, NO_HTTP):
        raise Broken(f"an error that is no JSON: {body[:300]!r}")


TARGETS = (Target("http", "raw requests: parser, queries, JSON, forms, ranges", http_session),)
