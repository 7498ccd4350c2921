"""Timeouts for slow clients: a request whose head does not arrive in time is cut off."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.types import Scope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_TIMEOUT = 15.0  # seconds for the request line and the headers
ABORT = "wordreel.abort"


def abort_connection(scope: Scope) -> None:
    """Drop a connection at once. Closing it would wait until the client has read what is on its way."""
    extension = scope.get("extensions", {}).get(ABORT)
    if extension is not None:
        extension["call"]()


class TimeoutProtocol(HttpToolsProtocol):
    """Closes connections whose request head does not arrive in time, be it the first or a later one."""

    head_timeout = HEAD_TIMEOUT

    def connection_made(self, transport: Any) -> None:
        self._head_timer: asyncio.TimerHandle | None = None
        super().connection_made(transport)
        self._start_timer()

    def on_message_begin(self) -> None:
        self._start_timer()
        super().on_message_begin()
        self.scope["extensions"] = {ABORT: {"call": self.transport.abort}}

    def on_headers_complete(self) -> None:
        self._cancel_timer()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_timer()
        super().connection_lost(exc)

    def _start_timer(self) -> None:
        self._cancel_timer()
        self._head_timer = self.loop.call_later(self.head_timeout, self._time_out)

    def _cancel_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _time_out(self) -> None:
        if self.transport is not None and not self.transport.is_closing():
            self.transport.close()
