"""Login sessions, in memory: a restart logs everybody out."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable

COOKIE = "wordreel"
LASTS = 30 * 86400.0  # seconds
MOST = 1000


class Sessions:
    """Sessions by the hash of what stands in the cookie."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._until: OrderedDict[bytes, float] = OrderedDict()

    def open(self) -> str:
        """A new session; the oldest goes where there are too many."""
        cookie = secrets.token_urlsafe(32)
        self._until[_hash(cookie)] = self._now() + LASTS
        while len(self._until) > MOST:
            self._until.popitem(last=False)
        return cookie

    def valid(self, cookie: str) -> bool:
        """Looking a hash up tells nothing about the cookie through the time it takes."""
        key = _hash(cookie)
        until = self._until.get(key)
        if until is not None and until <= self._now():
            self._until.pop(key, None)
            return False
        return until is not None

    def close(self, cookie: str) -> None:
        self._until.pop(_hash(cookie), None)


def _hash(cookie: str) -> bytes:
    return hashlib.sha256(cookie.encode("utf-8", "replace")).digest()
