"""Folders of weights that appear, change and go as a whole."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from wordreel.errors import NextStep, WeightsError, WeightsMissing
from wordreel.util.atomic import sync_file

ABANDONED = 24 * 3600.0  # seconds after which a staging folder must be that of a killed process


@contextmanager
def staging_folder(root: Path, name: str) -> Iterator[Path]:
    """Yield a temporary folder on the same disk as `root/name`, removed afterwards whatever happens."""
    import tempfile

    with writing(root):
        root.mkdir(parents=True, exist_ok=True)
        for left in root.glob(".fetch-*"):
            if time.time() - left.stat().st_mtime > ABANDONED:
                shutil.rmtree(left, ignore_errors=True)
        path = Path(tempfile.mkdtemp(prefix=f".fetch-{name}-", dir=root))
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)


@contextmanager
def writing(root: Path) -> Iterator[None]:
    """Turn a disk that is full or forbidden into an error with a next step."""
    try:
        yield
    except OSError as error:
        raise _cannot_write(root, error) from error


def replace_folder(source: Path, target: Path) -> Path:
    """Flush the folder `source` to disk and rename it to `target`, where an older folder may be."""
    for path in (*sorted(source.rglob("*")), source):
        sync_file(path)
    for attempt in range(10):
        with suppress(FileNotFoundError):
            target.rename(source.with_name(f"aside{attempt}"))
        with suppress(OSError):  # another process installed the same weights just now: take turns
            source.rename(target)
            break
    else:
        source.rename(target)
    sync_file(target.parent)
    return target


def remove_folder(root: Path, name: str) -> int:
    """Delete `root/name` with all its files, all at once to whoever looks; returns the bytes freed."""
    folder = root / name
    if not folder.is_dir():
        raise WeightsMissing(f"{name!r} is not installed", NextStep("list all weights", "weights"))
    freed = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    with staging_folder(root, name) as staging:
        folder.rename(staging / "removed")
    return freed


def _cannot_write(root: Path, error: OSError) -> WeightsError:
    return WeightsError(
        f"cannot write weights to {root}: {error.strerror or error}",
        NextStep("free some space there or set WORDREEL_WEIGHTS to another folder"),
    )


SPARE_BYTES = 64 * 2**20


def check_space(folder: Path, needed: int, what: str) -> None:
    """Raise unless that many bytes fit into a folder, with some to spare. `what` begins the message."""
    free = shutil.disk_usage(folder).free
    if needed + SPARE_BYTES > free:
        raise WeightsError(
            f"{what} {needed / 1e6:.0f} MB, and {free / 1e6:.0f} MB are left",
            NextStep("free some space or set WORDREEL_WEIGHTS to another folder"),
        )
