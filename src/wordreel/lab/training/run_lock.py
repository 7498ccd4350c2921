"""Lock a run's folder, so that one training at a time writes to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wordreel.catalogue.lock import writer_lock
from wordreel.errors import LibraryBusy, LibraryError, NextStep, TrainingError
from wordreel.util.atomic import make_dir

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
