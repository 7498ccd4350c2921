"""Several processes, each at work on something of its own: bytes of one file, locked while they work.

Locks are POSIX record locks: they go with their process however it ends, so what nobody holds but is not done
was left by a process that died.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


class Turns:
    """Byte 0 is for looking around in peace, byte n + 1 for piece of work n."""

    def __init__(self, path: Path) -> None:
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Wait until nobody else looks around."""
        with suppress(OSError):
            fcntl.lockf(self._handle, fcntl.LOCK_EX, 1, 0)
        try:
            yield
        finally:
            self._unlock(0)

    def take(self, number: int) -> bool:
        """Begin this piece of work; False where another process is at it."""
        try:
            fcntl.lockf(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number + 1)
        except (BlockingIOError, PermissionError):
            return False
        except OSError:  # a file system without locks: nobody can be told of anybody
            return True
        return True

    def let_go(self, number: int) -> None:
        self._unlock(number + 1)

    def _unlock(self, byte: int) -> None:
        with suppress(OSError):
            fcntl.lockf(self._handle, fcntl.LOCK_UN, 1, byte)

    def close(self) -> None:
        """Let go of everything."""
        os.close(self._handle)
