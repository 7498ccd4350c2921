"""Login sessions: one empty file for each, in the folder that the server's processes share.

A restart logs everybody out.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable
from pathlib import Path

COOKIE = "wordreel"
LASTS = 30 * 86400.0  # seconds


class Sessions:
    """Sessions by the hash of what stands in the cookie."""

    def __init__(self, folder: Path, now: Callable[[], float] = time.time) -> None:
        self._folder, self._now = folder, now
        folder.mkdir(mode=0o700, exist_ok=True)

    def open(self) -> str:
        """Return the cookie of a new session."""
        cookie = secrets.token_urlsafe(32)
        self._file(cookie).touch()
        return cookie

    def valid(self, cookie: str) -> bool:
        """Looking a hash up tells nothing about the cookie through the time it takes."""
        try:
            opened = self._file(cookie).stat().st_mtime
        except FileNotFoundError:
            return False
        return self._now() - opened < LASTS

    def close(self, cookie: str) -> None:
        self._file(cookie).unlink(missing_ok=True)

    def _file(self, cookie: str) -> Path:
        return self._folder / hashlib.sha256(cookie.encode("utf-8", "replace")).hexdigest()
