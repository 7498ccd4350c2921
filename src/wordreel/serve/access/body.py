"""Bodies that are too large or too slow are refused while they arrive."""

from __future__ import annotations

import asyncio
import time

from starlette.types import Message, Receive

from wordreel.serve.problems import Problem

SLOWEST = 1024.0  # bytes a second, after the timeout is used up


class Body:
    """Wraps `receive`: counts bytes, and measures time. Reading on after a refusal is pointless."""

    def __init__(self, receive: Receive, most: int, timeout: float) -> None:
        self._receive, self._most, self._timeout = receive, most, timeout
        self._bytes = 0
        self._began = time.monotonic()
        self._whole = False

    async def __call__(self) -> Message:
        if self._whole:  # what comes now is the client going away, which may take any time
            return await self._receive()
        allowed = self._began + self._timeout + self._bytes / SLOWEST - time.monotonic()
        try:
            message = await asyncio.wait_for(self._receive(), max(0.0, min(allowed, self._timeout)))
        except TimeoutError:
            raise too_slow() from None
        if message["type"] == "http.request":
            self._bytes += len(message.get("body", b""))
            self._whole = not message.get("more_body", False)
            if self._bytes > self._most:
                raise too_large(self._most)
        return message


def too_slow() -> Problem:
    return Problem(
        408, "too_slow", "the request arrived too slowly; try again", headers={"connection": "close"}
    )


def too_large(most: int) -> Problem:
    return Problem(
        413,
        "too_large",
        f"the body may have {most / 2**20:g} MiB; send less",
        headers={"connection": "close"},
    )
