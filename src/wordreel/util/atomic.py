"""Crash-safe file writes: a kill or a power cut leaves the old file or the new one, never half of one."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def sync_dir(folder: Path) -> None:
    """Flush a directory, so that names created, renamed or removed in it survive a power cut."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_file(path: Path) -> None:
    """Flush a file that was written by somebody else to the disk; a directory as well."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_and_sync(path: Path, data: bytes) -> None:
    """Write a file and flush it to the disk."""
    with path.open("wb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())


def append_and_sync(path: Path, size: int, data: bytes) -> None:
    """Write after the first `size` bytes of a file and flush it; what else stood there is truncated."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    with os.fdopen(handle, "r+b") as out:
        out.truncate(size)
        out.seek(size)
        out.write(data)
        out.flush()
        os.fsync(out.fileno())


def make_dir(folder: Path) -> None:
    """Create a directory and its parents, flushed to the disk."""
    if not folder.is_dir():
        make_dir(folder.parent)
        folder.mkdir(exist_ok=True)
        sync_dir(folder.parent)


def atomic_write(path: Path, data: bytes) -> None:
    """Replace a file as a whole: write a new file, flush it, rename it over the old one."""
    fresh = path.with_name(path.name + ".new")
    try:
        write_and_sync(fresh, data)
    except OSError:  # half a file would only fill a full disk further
        with suppress(OSError):
            fresh.unlink()
        raise
    fresh.replace(path)
    sync_dir(path.parent)
