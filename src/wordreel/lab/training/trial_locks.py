"""Locks on the trials of a search that several processes run together: one byte of a file per trial.

POSIX record locks end with their process, however it ends: an unfinished trial that nobody holds was killed.
Optuna's heartbeat would know after a timeout only, and run a copy of the trial under another number.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


class TrialLocks:
    """Byte 0 guards the choice of the next trial, byte n + 1 guards trial n."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Wait until no other process is choosing a trial, then keep others from it."""
        with suppress(OSError):
            fcntl.lockf(self._file, fcntl.LOCK_EX, 1, 0)
        try:
            yield
        finally:
            self._unlock(0)

    def acquire(self, trial: int) -> bool:
        """Lock a trial; False where another process holds it."""
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, trial + 1)
        except (BlockingIOError, PermissionError):
            return False
        except OSError:  # a file system without locks: assume that this process is alone
            return True
        return True

    def release(self, trial: int) -> None:
        self._unlock(trial + 1)

    def close(self) -> None:
        """Release every lock."""
        os.close(self._file)

    def _unlock(self, byte: int) -> None:
        with suppress(OSError):
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, byte)
