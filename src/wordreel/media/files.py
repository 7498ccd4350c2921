"""Opening a path that may be anything: only a regular file comes through, and nothing blocks."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from wordreel.errors import BrokenMedia, NotMedia, OverLimit
from wordreel.media.formats import HEAD, Container, sniff
from wordreel.media.types import Limits

_ODD = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


@dataclass(frozen=True)
class OpenFile:
    """A regular file held open by descriptor, and the container its first bytes show."""

    descriptor: int
    size: int
    container: Container

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self.descriptor)


def open_media(path: Path, limits: Limits) -> OpenFile:
    """Open `path` if it is a regular file of an allow-listed container. Links are followed.

    The type is checked before opening (a pipe would wait for a writer, a tape would rewind) and again
    after it, of the descriptor itself, in case the path was swapped in between.
    """
    try:
        _only_regular(path.stat().st_mode)
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
        descriptor = os.open(path, flags)
    except ValueError as error:
        raise NotMedia("the path has a zero byte in it") from error
    except OSError as error:
        raise BrokenMedia(f"cannot be opened: {(error.strerror or 'unknown error').lower()}") from error
    try:
        status = os.fstat(descriptor)
        _only_regular(status.st_mode)
        if status.st_size == 0:
            raise BrokenMedia("the file is empty")
        if status.st_size > limits.file_bytes:
            raise OverLimit(
                f"{status.st_size / 2**30:.1f} GiB is over the limit of {limits.file_bytes / 2**30:.1f} GiB"
            )
        return OpenFile(descriptor, status.st_size, sniff(_head(descriptor)))
    except BaseException:
        os.close(descriptor)
        raise


def _head(descriptor: int) -> bytes:
    try:
        return os.pread(descriptor, HEAD, 0)
    except OSError as error:
        raise BrokenMedia(f"cannot be read: {(error.strerror or 'unknown error').lower()}") from error


def _only_regular(mode: int) -> None:
    if stat.S_ISREG(mode):
        return
    what = next((name for test, name in _ODD if test(mode)), "not a regular file")
    raise NotMedia(f"{what} is not media")
