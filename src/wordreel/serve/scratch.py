"""What the processes of one server share: a folder in memory, deleted when the server stops.

sessions/   one empty file for each login
asked/      pictures that queries of a read-only server ask with
paused      exists while jobs are paused
writers     locked by requests that write to the library
starting    locked by a process that starts
watching    locked by the process that watches folders
metrics/    counters, where there are several processes
"""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

MEMORY = Path("/dev/shm")  # noqa: S108 - a file system in memory
LOOK_EVERY = 0.1  # seconds


def make_scratch() -> TemporaryDirectory[str]:
    """Make a folder, in memory where the system has such a file system."""
    return TemporaryDirectory(prefix="wordreel-", dir=MEMORY if MEMORY.is_dir() else None)


class JobSignals:
    """What keeps jobs from running: a pause, and requests that write to the library."""

    def __init__(self, scratch: Path) -> None:
        self._pause, self._writers, self._start = (
            scratch / name for name in ("paused", "writers", "starting")
        )
        self._writers.touch()
        self._start.touch()

    @property
    def paused(self) -> bool:
        """Whether jobs are paused."""
        return self._pause.exists()

    @paused.setter
    def paused(self, paused: bool) -> None:
        """Whether jobs are paused."""
        if paused:
            self._pause.touch()
        else:
            self._pause.unlink(missing_ok=True)

    @contextmanager
    def starting(self) -> Iterator[None]:
        """Let one process in at a time."""
        with self._start.open() as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            yield

    @contextmanager
    def writing(self, waits: Callable[[], bool], seconds: float) -> Iterator[None]:
        """Say that a request writes to the library, once `waits()` is false, or after so many seconds."""
        deadline = time.monotonic() + seconds
        with self._writers.open() as held:
            fcntl.flock(held, fcntl.LOCK_SH)
            while waits() and time.monotonic() < deadline:
                time.sleep(LOOK_EVERY)
            yield

    @property
    def writers(self) -> bool:
        """Whether a request writes to the library, or waits to."""
        with self._writers.open() as held:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            return False
