"""Token buckets: so many requests at once, so many a second after that, for each client."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

CLIENTS = 10_000  # remembered at once; a forgotten client starts with a full bucket


class TokenBuckets:
    """One bucket per client, filled with `rate` drops a second up to `burst`.

    >>> clock = iter([0.0, 0.0, 0.0, 1.0])
    >>> buckets = TokenBuckets(rate=1, burst=2, now=lambda: next(clock))
    >>> [buckets.wait("me") for _ in range(4)]
    [0.0, 0.0, 1.0, 0.0]
    """

    def __init__(self, rate: float, burst: float, now: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._now = rate, burst, now
        self._held: OrderedDict[str, tuple[float, float]] = OrderedDict()  # client -> (drops, when)

    def wait(self, client: str) -> float:
        """Take a drop: 0.0 where there was one, otherwise the seconds until there is."""
        if self._rate <= 0:
            return 0.0
        now = self._now()
        drops, when = self._held.pop(client, (self._burst, now))
        drops = min(self._burst, drops + (now - when) * self._rate)
        waits = 0.0 if drops >= 1 else (1 - drops) / self._rate
        self._held[client] = (drops - 1 if drops >= 1 else drops, now)
        if len(self._held) > CLIENTS:
            self._held.popitem(last=False)
        return waits
