"""List the files that an `add` has to process, by their stamps and what the catalogue knows of them.

Files and folders are always walked in the same order.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from wordreel.catalogue.connection import Catalogue
from wordreel.catalogue.passes import is_quick, quick_contents
from wordreel.catalogue.paths import absent_folder, canonical_path, may_exist, to_blob
from wordreel.catalogue.records import FileStamp
from wordreel.catalogue.remove import files_below
from wordreel.errors import MediaError
from wordreel.ingest.add_report import AddReport
from wordreel.ingest.file_processor import expert_set_id, missing_experts
from wordreel.ingest.tasks import AddOptions, AddTask
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
class ScannedFile:
    """A regular file that may be media. `expected`: report it if it turns out not to be."""

    path: str
    stamp: FileStamp
    expected: bool


@dataclass(frozen=True)
class IgnoredFile:
    """Not media, and not expected to be: a note, a subtitle, a program."""

    path: str


@dataclass(frozen=True)
class UnreadableFile:
    """Named by the user, or looking like media, but not a file that may be opened."""

    path: str
    reason: str


Scanned = ScannedFile | IgnoredFile | UnreadableFile


def scan(
    paths: Sequence[str | os.PathLike[str]],
    skip: str = "",
    within: Sequence[str | os.PathLike[str]] | None = None,
) -> Iterator[Scanned]:
    """Yield every file named, and every file below every folder named, once each.

    Hidden files and folders are skipped unless named themselves; so is `skip`, the library's own folder. A
    link to a folder is not followed: it may lead back here, or out of the folder. A link to a file is listed
    under its own name and judged by the file it leads to: that file must be a regular one outside `skip`
    and, with `within`, inside one of those folders. Sockets, pipes and devices are never opened.
    """
    seen: set[str] = set()
    for root in paths:
        path = canonical_path(root)
        for item in _walk(path, skip, within) if Path(path).is_dir() else [_look(path, True, skip, within)]:
            if item.path not in seen:
                seen.add(item.path)
                yield item


def resolves_within(path: str | os.PathLike[str], folders: Sequence[str | os.PathLike[str]]) -> bool:
    """Return whether a path, all links resolved, is in (or is) one of some resolved folders."""
    target = Path(os.path.realpath(path))
    return any(target.is_relative_to(os.path.realpath(folder)) for folder in folders)


def _walk(folder: str, skip: str, within: Sequence[str | os.PathLike[str]] | None) -> Iterator[Scanned]:
    try:
        with os.scandir(folder) as listing:
            entries = sorted(listing, key=lambda entry: to_blob(entry.name))
    except OSError as error:
        yield UnreadableFile(folder, f"the folder cannot be read: {_reason(error)}")
        return
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False):
            if entry.path != skip:
                yield from _walk(entry.path, skip, within)
        elif not (entry.is_symlink() and entry.is_dir()):
            yield _look(entry.path, False, skip, within)


def _look(path: str, named: bool, skip: str, within: Sequence[str | os.PathLike[str]] | None) -> Scanned:
    expected = named or Path(path).suffix.lower() in EXTENSIONS
    try:
        status = Path(path).stat()
        if not stat.S_ISREG(status.st_mode):
            return UnreadableFile(path, "not a regular file") if named else IgnoredFile(path)
        if within is not None and not resolves_within(path, within):
            reason = "it is, or leads to, a file outside the allowed folders"
            return UnreadableFile(path, reason) if expected else IgnoredFile(path)
        if skip and Path(path).is_symlink() and resolves_within(path, [skip]):
            return IgnoredFile(path)
        if not expected:
            _sniff(path)
        return ScannedFile(path, FileStamp.of(status), expected)
    except MediaError:
        return IgnoredFile(path)
    except (OSError, ValueError) as error:
        return UnreadableFile(path, _reason(error)) if expected else IgnoredFile(path)


def _sniff(path: str) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        sniff(os.read(handle, HEAD))
    finally:
        os.close(handle)


def _reason(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "no such file or folder"
    return str(getattr(error, "strerror", None) or error)


CLOCK_TICK_NS = 50_000_000  # file times tick this coarsely at worst


@dataclass(frozen=True)
class AddPlanner:
    """Lists the files to process and counts the others in `report`; reads only folders and first bytes."""

    catalogue: Catalogue
    fingerprints: Mapping[str, str]
    options: AddOptions
    report: AddReport

    def plan(self, roots: Sequence[str], skip: str) -> list[AddTask]:
        """Return the files at or below `roots`, canonical paths, that are to be processed."""
        tasks: list[AddTask] = []
        seen: set[str] = set()
        for item in scan(roots, skip=skip, within=self.options.within):
            seen.add(item.path)
            if isinstance(item, IgnoredFile):
                self.report.ignored += 1
            elif isinstance(item, ScannedFile):
                task = self._task(item)
                if task is not None:
                    tasks.append(task)
            else:
                self.report.failed.append((item.path, item.reason))
        self.report.gone = _gone(self.catalogue, roots, seen)
        if self.options.only_waiting:
            waiting = quick_contents(self.catalogue)
            tasks = [task for task in tasks if task.last_content in waiting]
        return tasks if sum(task.stamp.size for task in tasks) >= self.options.least_bytes else []

    def _task(self, item: ScannedFile) -> AddTask | None:
        """Return the task for one file; None if it is up to date or failed before in the same way."""
        now = time.time_ns()
        stamp, key = item.stamp, to_blob(item.path)
        failed = self.catalogue.one("SELECT size, mtime_ns, recipe, reason FROM failures WHERE path = ?", key)
        same = failed and not self.options.retry_failed and failed[:2] == (stamp.size, stamp.mtime_ns)
        # Whatever failed, the quick pass leaves it to the thorough one.
        if failed and same and (self.options.quick or failed[2] == expert_set_id(self.fingerprints)):
            self.report.still_failed.append((item.path, failed[3]))
            return None
        row = self.catalogue.one(
            "SELECT size, mtime_ns, ctime_ns, inode, checked_ns, content FROM files WHERE path = ?", key
        )
        content = None
        last_content = row[5] if row and FileStamp(*row[:4]) == stamp else None
        if row and last_content and max(stamp.mtime_ns, stamp.ctime_ns) + CLOCK_TICK_NS < row[4]:
            content = last_content
            if self._up_to_date(content):
                self.report.skipped += 1
                return None
        return AddTask(item.path, stamp, item.expected, now, content, last_content)

    def _up_to_date(self, content: str) -> bool:
        if self.options.quick:
            return True
        undated = "SELECT 1 FROM contents WHERE content = ? AND recorded IS NULL"  # by an earlier version
        if is_quick(self.catalogue, content) or self.catalogue.one(undated, content):
            return False
        return not missing_experts(self.catalogue, content, self.fingerprints)


def _gone(catalogue: Catalogue, roots: Sequence[str], seen: set[str]) -> list[str]:
    """Known files at or below `roots`, canonical paths, that are no longer in their folders."""
    unseen = [path for path in files_below(catalogue, roots) if path not in seen]
    return [path for path in unseen if not may_exist(path) and absent_folder(path) is None]
