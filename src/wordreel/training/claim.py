"""A run's folder belongs to one run at a time, and must be there to write to."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wordreel.atomic import make_dir
from wordreel.errors import LibraryBusy, LibraryError, TrainingError
from wordreel.library.lock import writer_lock

FILE = "lock"
WRITING = (
    errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO, errno.ENOENT,
    errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENAMETOOLONG,
)  # fmt: skip


@contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """Hold a run's folder. The lock goes with the process, however that ends.

    A disk that is full or gone is an error that says so; what was written before stays whole.
    """
    try:
        make_dir(folder)
    except OSError as error:
        raise TrainingError(
            f"{folder} cannot be made: {error.strerror or error}; name another --out"
        ) from None
    try:
        with writer_lock(folder / FILE):
            try:
                yield
            except OSError as error:
                if error.errno not in WRITING:
                    raise
                raise unwritable(folder, error) from error
    except LibraryBusy:
        raise TrainingError(
            f"another training is writing to {folder}; wait until it is done, or name another --out"
        ) from None
    except LibraryError as error:
        raise TrainingError(str(error)) from None


def check_room(folder: Path) -> None:
    """Find out before hours of work whether the folder can be written to."""
    with claimed(folder):
        pass


def unwritable(folder: Path, error: OSError) -> TrainingError:
    return TrainingError(
        f"the run in {folder} cannot be written: {error.strerror or error}; make room or name another --out "
        "(what was saved before is whole, and --resume goes on from it)"
    )
