"""Walk what the user named and list the files that may be media, always in the same order."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from wordreel.errors import MediaError
from wordreel.library.paths import settle, stored
from wordreel.media.formats import HEAD, sniff

# ".ts" and ".mts" are not here: most files of that name are programs, so their first bytes decide.
EXTENSIONS = frozenset(
    {
        *(".3gp", ".avi", ".f4v", ".flv", ".m2ts", ".m2v", ".m4v", ".mkv", ".mov", ".mp4", ".mpe", ".mpeg"),
        *(".mpg", ".ogm", ".ogv", ".vob", ".webm", ".wmv"),
        *(".aac", ".aif", ".aiff", ".flac", ".m4a", ".mka", ".mp2", ".mp3", ".oga", ".ogg", ".opus", ".wav"),
        *(".wma", ".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp"),
    }
)


@dataclass(frozen=True)
class Stamp:
    """What tells, without reading it, that a file is the one seen before."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int

    @classmethod
    def of(cls, status: os.stat_result) -> Stamp:
        # Some file systems number files with 64 bits; SQLite's integers have 63 and a sign.
        return cls(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino & (2**63 - 1))


@dataclass(frozen=True)
class Found:
    """A regular file. `expected` says the user would want to hear of it if it is not media."""

    path: str
    stamp: Stamp
    expected: bool


@dataclass(frozen=True)
class Ignored:
    """Not media, and nobody said it was: a note, a subtitle, a program."""

    path: str


@dataclass(frozen=True)
class Unreadable:
    """Named by the user, or looking like media, and not a file that can be opened."""

    path: str
    reason: str


def scan(paths: Sequence[str | os.PathLike[str]], skip: str = "") -> Iterator[Found | Ignored | Unreadable]:
    """Every file named, and every file below every folder named, once each.

    Hidden files and folders are passed over unless named themselves; so is `skip`, the library's own
    folder. A link to a folder is not followed (it may lead back here, or out of the folder that was meant);
    a link to a file counts as a file under the link's own name. Sockets, pipes and devices are never opened.
    """
    seen: set[str] = set()
    for root in paths:
        settled = settle(root)
        for item in _walk(settled, skip) if Path(settled).is_dir() else [_look(settled, named=True)]:
            if item.path not in seen:
                seen.add(item.path)
                yield item


def _walk(folder: str, skip: str) -> Iterator[Found | Ignored | Unreadable]:
    try:
        with os.scandir(folder) as listing:
            entries = sorted(listing, key=lambda e: stored(e.name))
    except OSError as error:
        yield Unreadable(folder, f"the folder cannot be read: {_why(error)}")
        return
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False):
            if entry.path != skip:
                yield from _walk(entry.path, skip)
        elif not (entry.is_symlink() and entry.is_dir()):
            yield _look(entry.path, named=False)


def _look(path: str, named: bool) -> Found | Ignored | Unreadable:
    expected = named or Path(path).suffix.lower() in EXTENSIONS
    try:
        status = Path(path).stat()
        if not stat.S_ISREG(status.st_mode):
            return Unreadable(path, "not a regular file") if named else Ignored(path)
        if not expected:
            _sniff(path)
        return Found(path, Stamp.of(status), expected)
    except MediaError:
        return Ignored(path)
    except (OSError, ValueError) as error:
        return Unreadable(path, _why(error)) if expected else Ignored(path)


def _sniff(path: str) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        sniff(os.read(handle, HEAD))
    finally:
        os.close(handle)


def _why(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "no such file or folder"
    return str(getattr(error, "strerror", None) or error)
