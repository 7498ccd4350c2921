"""Bounds on connections before their request arrives: the size and time of its head, and how many may wait.

All of this happens before the application, and so before hosts, logins and rates are checked.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from http import HTTPStatus
from typing import Any

from starlette.types import Scope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from wordreel.serve.problems import Problem

HEAD_TIMEOUT = 15.0  # seconds for the request line and the headers
MAX_HEAD_BYTES = 64 * 1024
MAX_HEADERS = 100
MAX_IDLE = 256  # connections without a complete request
LINGER = 1.0  # seconds for a refused client to read why
ABORT = "wordreel.abort"


def abort_connection(scope: Scope) -> None:
    """Drop a connection at once. Closing it would wait until the client has read what is on its way."""
    extension = scope.get("extensions", {}).get(ABORT)
    if extension is not None:
        extension["call"]()


class BoundedProtocol(HttpToolsProtocol):
    """Bounds the head of each request, and the connections that have not sent one.

    Of too many such connections the oldest is closed: an honest client sends its request at once, so
    clients that hold connections open push out one another and nobody else.
    """

    idle: OrderedDict[BoundedProtocol, None]  # oldest first; one for each server, see `bounded_protocol`
    head_timeout = HEAD_TIMEOUT

    def connection_made(self, transport: Any) -> None:
        self._head_timer: asyncio.TimerHandle | None = None
        self._in_head, self._head_bytes = False, 0
        self._has_asked = False  # on this connection
        self._refusal = _bad_request()
        super().connection_made(transport)
        self._start_timer()
        self._wait()

    def data_received(self, data: bytes) -> None:
        self._head_bytes += len(data)
        super().data_received(data)
        if self._in_head and self._head_bytes > MAX_HEAD_BYTES:
            self._refuse(_head_too_large())

    def on_message_begin(self) -> None:
        self._start_timer()
        self._in_head, self._head_bytes = True, 0
        super().on_message_begin()
        self.scope["extensions"] = {ABORT: {"call": self.transport.abort}}

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > MAX_HEAD_BYTES:
            self._stop_parsing()

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        if len(self.headers) > MAX_HEADERS:
            self._stop_parsing()

    def on_headers_complete(self) -> None:
        self._cancel_timer()
        self._in_head, self._has_asked = False, True
        self.idle.pop(self, None)
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.transport.is_closing() and self.cycle.response_complete:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_timer()
        self.idle.pop(self, None)
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Called by uvicorn where a request cannot be parsed."""
        self._refuse(self._refusal)

    def _wait(self) -> None:
        """Count as a connection without a request; close the oldest of too many."""
        self.idle[self] = None
        self.idle.move_to_end(self)
        if len(self.idle) > MAX_IDLE:
            oldest = next(iter(self.idle))
            # In a burst the first request may be on its way, unread: its client waits for an answer.
            oldest._refuse(_too_busy(), begun=not oldest._has_asked)

    def _start_timer(self) -> None:
        self._cancel_timer()
        self._head_timer = self.loop.call_later(self.head_timeout, self._time_out)

    def _cancel_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _time_out(self) -> None:
        self._refuse(_too_slow())

    def _stop_parsing(self) -> None:
        self._refusal = _head_too_large()
        raise ValueError(self._refusal.message)  # the parser stops; uvicorn calls `send_400_response`

    def _refuse(self, problem: Problem, begun: bool = False) -> None:
        """Answer in the shape of every error, where a request was or may have been begun, and close."""
        self.idle.pop(self, None)
        self._cancel_timer()
        in_head, self._in_head = self._in_head, False
        if self.transport is None or self.transport.is_closing():
            return
        if (in_head or begun) and (self.cycle is None or self.cycle.response_complete):
            self.transport.write(_raw(problem))
            if self.transport.can_write_eof():
                # Closing now would reset the connection, and lose the answer, while the client still sends.
                self.transport.write_eof()
                self.transport.pause_reading()
                self.loop.call_later(LINGER, self.transport.abort)
                return
        self.transport.close()


def bounded_protocol() -> type[BoundedProtocol]:
    """The protocol of one server, with its own list of idle connections."""
    return type("ServerProtocol", (BoundedProtocol,), {"idle": OrderedDict()})


def _raw(problem: Problem) -> bytes:
    """An error as bytes, for where there is no application yet."""
    response = problem.response()
    status = HTTPStatus(problem.status_code)
    lines = [f"HTTP/1.1 {status.value} {status.phrase}".encode()]
    lines += [name + b": " + value for name, value in response.raw_headers]
    return b"\r\n".join([*lines, b"connection: close", b"", bytes(response.body)])


def _bad_request() -> Problem:
    return Problem(400, "bad_request", "this is not an HTTP request")


def _head_too_large() -> Problem:
    most = f"{MAX_HEAD_BYTES // 1024} KiB and {MAX_HEADERS} headers"
    return Problem(431, "head_too_large", f"the head of a request may have {most}; send less")


def _too_slow() -> Problem:
    return Problem(408, "too_slow", "the head of the request arrived too slowly; try again")


def _too_busy() -> Problem:
    return Problem(
        503, "too_busy", "too many connections without a request; try again", headers={"retry-after": "1"}
    )
