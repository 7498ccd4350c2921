"""Lock a run's folder, so that one training at a time writes to it, and stop a run between two steps.

Ctrl-C or SIGTERM ends a run after the current step, with its state saved.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from wordreel.catalogue.lock import writer_lock
from wordreel.errors import LibraryBusy, LibraryError, NextStep, TrainingError
from wordreel.util.atomic import make_dir

SIGNALS = (signal.SIGINT, signal.SIGTERM)
LOCK_FILE = "lock"
OTHER_FOLDER = NextStep("write to another folder", command="train … --out DIR")


@contextmanager
def run_lock(folder: Path) -> Iterator[None]:
    """Hold the lock of a run's folder; the operating system releases it however the process ends.

    Raises:
        TrainingError: Another process holds the lock, or the folder cannot be written to, now or while the
            lock is held (a full disk). Files written before stay intact.
    """
    try:
        make_dir(folder)
    except OSError as error:
        raise TrainingError(f"cannot create {folder}: {error.strerror or error}", OTHER_FOLDER) from None
    try:
        with writer_lock(folder / LOCK_FILE):
            try:
                yield
            except OSError as error:
                if isinstance(error, ConnectionError):
                    raise
                reason = f"{error.strerror or error} (the last saved state is intact)"
                step = NextStep("free disk space and resume", command="train … --resume")
                raise TrainingError(f"cannot write the run in {folder}: {reason}", step) from error
    except LibraryBusy:
        raise TrainingError(f"another training is writing to {folder}", OTHER_FOLDER) from None
    except LibraryError as error:
        raise TrainingError(error.message, error.next_step) from None


def check_writable(folder: Path) -> None:
    """Fail before hours of work, not after, where the folder cannot be written to."""
    with run_lock(folder):
        pass


class TrainingInterrupted(KeyboardInterrupt):
    """A run was stopped by request after saving its state; `resume` continues from there."""


class StopRequest:
    """Whether a stop was requested. A second signal interrupts the program at once."""

    def __init__(self) -> None:
        self.requested = False

    def handle_signal(self, number: int, frame: FrameType | None) -> None:
        """Note the request; interrupt at the second one."""
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True


@contextmanager
def stop_on_signal(enabled: bool = True) -> Iterator[StopRequest]:
    """Turn SIGINT and SIGTERM into a stop request; a signal that is ignored stays ignored.

    Only the main thread can handle signals. Distributed training passes `enabled=False`: its processes would
    stop at different steps and then wait for each other for ever.
    """
    stop = StopRequest()
    if not enabled or threading.current_thread() is not threading.main_thread():
        yield stop
        return
    handled = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    previous = {number: signal.signal(number, stop.handle_signal) for number in handled}
    try:
        yield stop
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
