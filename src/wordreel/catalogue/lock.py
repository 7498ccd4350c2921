"""One writer at a time: a lock on `<library>/lock`. Readers never look at it."""

from __future__ import annotations

import fcntl
import os
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from wordreel.errors import LibraryBusy, LibraryReadOnly, NextStep
from wordreel.util.atomic import sync_dir

_held: dict[str, int] = {}  # lock file -> the thread of this process that holds it
_guard = threading.Lock()


@contextmanager
def writer_lock(path: Path) -> Iterator[bool]:
    """Hold the lock; yields True if the previous writer died, or failed, without releasing it.

    The file holds the writer's process id while it works and is empty otherwise, so an id that is still
    there when the lock is free means an error, a kill or a power cut. This is a POSIX record lock: it goes
    with the process however that ends, and the decoding workers it started do not inherit it.
    """
    key = os.path.realpath(path)
    with _guard:
        if key in _held:
            raise LibraryBusy(
                "this process is already writing to this library", NextStep("wait until it is done")
            )
        _held[key] = threading.get_ident()
    try:
        created = not path.exists()
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise _not_writable(path, error) from error
        try:
            try:
                fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                holder = os.read(handle, 32).decode("ascii", "replace").strip() or "unknown"
                raise LibraryBusy(
                    f"another wordreel (process {holder}) is writing to this library",
                    NextStep("wait until it is done, or stop it, and try again"),
                ) from error
            died = os.fstat(handle).st_size > 0
            try:
                _write_name(handle)
                if created:
                    sync_dir(path.parent)
            except OSError as error:
                raise _not_writable(path, error) from error
            yield died
            with suppress(OSError):  # the next writer looks for leftovers in vain
                os.ftruncate(handle, 0)
        finally:
            os.close(handle)
    finally:
        with _guard:
            del _held[key]


def writer_at_work(path: Path) -> bool:
    """Return whether some process holds the lock; asking does not take it.

    The guard is held throughout: closing the file would release the lock that another thread has just taken.
    """
    question = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    with _guard:
        if os.path.realpath(path) in _held:
            return True
        try:
            handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            kind: int = struct.unpack("hhqqi", fcntl.fcntl(handle, fcntl.F_GETLK, question))[0]
        finally:
            os.close(handle)
    return kind != fcntl.F_UNLCK


def may_have_died(path: Path) -> bool:
    """Return whether a writer holds the lock now or died with it."""
    try:
        return path.stat().st_size > 0
    except OSError:
        return False


def _write_name(handle: int) -> None:
    """Write the process id, durably: after a power cut the next writer must look for leftovers."""
    name = f"{os.getpid()}\n".encode()
    os.pwrite(handle, name, 0)  # never empty in between: a death here must be noticed as well
    os.ftruncate(handle, len(name))
    os.fsync(handle)


def _not_writable(path: Path, error: OSError) -> LibraryReadOnly:
    return LibraryReadOnly(
        f"{path} cannot be written: {error.strerror}", NextStep("check its permissions and the disk")
    )
