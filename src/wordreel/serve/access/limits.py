"""Limits for each client: how often it asks, how large and how slow its requests are."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable

from starlette.types import Message, Receive

from wordreel.serve.problems import Problem, too_large

SLOWEST_BODY = 1024.0  # bytes a second, after the timeout
MAX_CLIENTS = 10_000  # with a bucket; a client without one starts with a full bucket


class TokenBuckets:
    """One bucket per client, filled with `rate` tokens a second up to `burst`.

    >>> clock = iter([0.0, 0.0, 0.0, 1.0])
    >>> buckets = TokenBuckets(rate=1, burst=2, now=lambda: next(clock))
    >>> [buckets.wait("me") for _ in range(4)]
    [0.0, 0.0, 1.0, 0.0]
    """

    def __init__(self, rate: float, burst: float, now: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._now = rate, burst, now
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()  # client -> (tokens, when)

    def wait(self, client: str) -> float:
        """Take a token: 0.0 where there is one, otherwise the seconds until there is."""
        if self._rate <= 0:
            return 0.0
        now = self._now()
        tokens, when = self._levels.pop(client, (self._burst, now))
        tokens = min(self._burst, tokens + (now - when) * self._rate)
        waits = 0.0 if tokens >= 1 else (1 - tokens) / self._rate
        self._levels[client] = (tokens - 1 if tokens >= 1 else tokens, now)
        if len(self._levels) > MAX_CLIENTS:
            self._levels.popitem(last=False)
        return waits


class LimitedBody:
    """Wraps `receive`: refuses a body that is too large or too slow while it arrives."""

    def __init__(self, receive: Receive, most: int, timeout: float) -> None:
        self._receive, self._most, self._timeout = receive, most, timeout
        self._bytes = 0
        self._started = time.monotonic()
        self._whole = False

    async def __call__(self) -> Message:
        if self._whole:  # the next message says that the client has gone, which may take any time
            return await self._receive()
        allowed = self._started + self._timeout + self._bytes / SLOWEST_BODY - time.monotonic()
        try:
            async with asyncio.timeout(max(0.0, min(allowed, self._timeout))):
                message = await self._receive()
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
