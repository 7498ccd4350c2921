"""Writing so that a kill or a power cut leaves the old file or the new one, never half of one."""

from __future__ import annotations

import os
from pathlib import Path


def sync_folder(folder: Path) -> None:
    """Make names created, renamed or removed in a folder survive a power cut."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_synced(path: Path, data: bytes) -> None:
    """Write a new file and wait until it is on the disk."""
    with path.open("wb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())


def make_folder(folder: Path) -> None:
    """Create a folder (and its parents) durably."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        sync_folder(folder.parent)


def replace_with(path: Path, data: bytes) -> None:
    """Replace a file as a whole."""
    fresh = path.with_name(path.name + ".new")
    try:
        write_synced(fresh, data)
    except OSError:  # a full disk is not helped by half a file
        fresh.unlink(missing_ok=True)
        raise
    fresh.replace(path)
    sync_folder(path.parent)
