"""A server that does not wait forever for a request to be said, or for an answer to be read."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.types import Scope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

PATIENCE = 15.0  # seconds for the head of a request
HANG_UP = "wordreel.hang_up"


def hang_up(scope: Scope) -> None:
    """End a connection at once. Closing it would wait until the client has read what is on its way."""
    way = scope.get("extensions", {}).get(HANG_UP)
    if way is not None:
        way["call"]()


class PatientProtocol(HttpToolsProtocol):
    """Closes connections whose request line and headers do not arrive in time, the first one or a later."""

    patience = PATIENCE

    def connection_made(self, transport: Any) -> None:
        self._head: asyncio.TimerHandle | None = None
        super().connection_made(transport)
        self._expect()

    def on_message_begin(self) -> None:
        self._expect()
        super().on_message_begin()
        self.scope["extensions"] = {HANG_UP: {"call": self.transport.abort}}

    def on_headers_complete(self) -> None:
        self._relax()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._relax()
        super().connection_lost(exc)

    def _expect(self) -> None:
        self._relax()
        self._head = self.loop.call_later(self.patience, self._give_up)

    def _relax(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None

    def _give_up(self) -> None:
        if self.transport is not None and not self.transport.is_closing():
            self.transport.close()
