"""Making a folder appear whole or not at all: a scratch folder beside it, flushed, then renamed."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from wordreel.errors import WeightsError

ABANDONED = 24 * 3600.0  # seconds after which a scratch folder must be a killed process's


@contextmanager
def scratch(root: Path, name: str) -> Iterator[Path]:
    """A scratch folder on the same disk as `root/name`, gone afterwards whatever happens."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        for left in root.glob(".fetch-*"):
            if time.time() - left.stat().st_mtime > ABANDONED:
                shutil.rmtree(left, ignore_errors=True)
        path = Path(tempfile.mkdtemp(prefix=f".fetch-{name}-", dir=root))
    except OSError as error:
        raise _cannot_write(root, error) from error
    try:
        yield path
    except OSError as error:
        raise _cannot_write(root, error) from error
    finally:
        shutil.rmtree(path, ignore_errors=True)


def move_in(made: Path, place: Path) -> Path:
    """Flush the folder `made` to disk and let it take `place`, where an older folder may stand."""
    for path in (*sorted(made.rglob("*")), made):
        _flush(path)
    aside = made.with_name("aside")
    for attempt in range(10):
        with suppress(FileNotFoundError):
            place.rename(aside.with_name(f"aside{attempt}"))
        with suppress(OSError):  # another process moved the same weights in just now: take turns
            made.rename(place)
            break
    else:
        made.rename(place)
    _flush(place.parent)
    return place


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _cannot_write(root: Path, error: OSError) -> WeightsError:
    return WeightsError(
        f"cannot write weights to {root}: {error.strerror or error}; free some space there or set "
        "WORDREEL_WEIGHTS to another folder"
    )
