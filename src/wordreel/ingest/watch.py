"""Watch folders: take files that are new or changed once they are still, one at a time.

A look lists the folders and compares sizes and times; file events, where the system has them, only say when
to look. What is gone from a folder, or with it, stays in the library.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Literal

from wordreel.catalogue.connection import Catalogue
from wordreel.catalogue.passes import Pass, latest_returned, waiting_files
from wordreel.catalogue.paths import canonical_path, to_blob
from wordreel.catalogue.store import LibraryStore
from wordreel.errors import LibraryBusy
from wordreel.ingest.add_report import AddReport
from wordreel.ingest.plan import ScannedFile, UnreadableFile, scan

log = logging.getLogger("wordreel")

STILL_SECONDS = 3.0  # for which size and time of a file stay the same before it is taken
POLL_SECONDS = 10.0  # between two looks where there are no file events
EVENTS_SECONDS = 60.0  # between two looks where there are: other machines' changes make none
BUSY_SECONDS = 5.0  # until a library that another process writes to is tried again
LOOK_SHARE = 10  # a look gets at most this part of the time
BATCH_BYTES = 64 * 2**20  # of files for a thorough pass, after which new files are looked for
PARTIAL = (".part", ".partial", ".crdownload", ".download", ".filepart", ".tmp")  # downloads on their way

Version = tuple[int, int]  # size and modification time of a file
Paths = Sequence[str | PathLike[str]]
RunAdd = Callable[[Sequence[str], Pass], AddReport]
EventKind = Literal[
    "absent", "back", "added", "changed", "moved", "copy", "finished", "failed", "moving", "busy", "idle"
]


@dataclass(frozen=True)
class WatchEvent:
    """What happened to a file or a folder.

    `absent` and `back` are folders that cannot be read now and that can be again. `added`, `changed`, `moved`
    and `copy` are files that searches find from now on, `finished` those that have had the thorough pass,
    `failed` those that could not be added, and `moving` those that are still being written when a single look
    ends. `busy`: another process writes to the library; `idle`: all is done.
    """

    kind: EventKind
    path: str = ""
    reason: str = ""


@dataclass
class FolderLooks:
    """Looks at folders, and finds the files that the library does not have as they are now."""

    catalogue: Catalogue
    folders: Sequence[str]
    skip: str  # the library's own folder
    within: Paths | None = None  # as of `add`
    clock: Callable[[], float] = time.monotonic
    absent: dict[str, str] = field(default_factory=dict)  # path -> why it cannot be read
    moving: dict[str, tuple[Version, float]] = field(default_factory=dict)  # path -> version, and since when
    _settled: dict[str, Version] = field(default_factory=dict)  # path -> version in the library, or taken

    def look(self) -> list[str]:
        """Return the files that are new or changed and have been still for long enough, each once."""
        now, still = self.clock(), []
        absent: dict[str, str] = {}
        moving: dict[str, tuple[Version, float]] = {}
        for item in scan(self.folders, skip=self.skip, within=self.within):
            if isinstance(item, UnreadableFile):
                absent[item.path] = item.reason
            if not isinstance(item, ScannedFile) or item.path.endswith(PARTIAL):
                continue
            version = (item.stamp.size, item.stamp.mtime_ns)
            if self._settled.get(item.path) == version:
                continue
            known = self._in_library(item.path, version)
            before, since = self.moving.get(item.path, (version, now))
            since = since if before == version else now
            if not known and now - since < STILL_SECONDS:
                moving[item.path] = version, since
                continue
            self._settled[item.path] = version
            if not known:
                still.append(item.path)
        self.absent, self.moving = absent, moving
        return still

    def forget(self, paths: Sequence[str]) -> None:
        """Let the next looks return these files again: they could not be taken."""
        for path in paths:
            self._settled.pop(path, None)

    def _in_library(self, path: str, version: Version) -> bool:
        """Whether the library has a file as it is, or has failed to add it as it is."""
        values = (to_blob(path), *version)
        query = "SELECT 1 FROM {} WHERE path = ? AND size = ? AND mtime_ns = ?"
        return any(self.catalogue.one(query.format(table), *values) for table in ("files", "failures"))


@dataclass
class FolderWatch:
    """Adds what the looks find: the quick pass first, the thorough one when there is nothing else to do."""

    store: LibraryStore
    looks: FolderLooks
    add: RunAdd
    wait: Callable[[], None]  # until something may have changed
    sleep: Callable[[float], None] = time.sleep
    _again: list[str] = field(default_factory=list)  # files that only the thorough pass may be able to read
    _tried: set[str] = field(default_factory=set)  # files that this watch has given the thorough pass

    def run(self, once: bool = False) -> Iterator[WatchEvent]:
        """Yield what happens, for ever; with `once`, until everything that is still has been added."""
        settling, last = (
            False,
            "",
        )  # whether it has just waited for files to be still; the last state reported
        while True:
            started, before = self.looks.clock(), self.looks.absent
            still = self.looks.look()
            rest = LOOK_SHARE * (self.looks.clock() - started)
            yield from self._folders(before)
            try:
                if still:
                    yield from self._quick(still)
                    last = ""
                elif self.looks.moving and not settling:
                    settling = True
                    self.sleep(max(STILL_SECONDS, rest))
                    continue
                elif batch := self._next_batch():
                    yield from self._thorough(batch)
                    last = ""
                elif once:
                    yield from (WatchEvent("moving", path) for path in sorted(self.looks.moving))
                    yield WatchEvent("idle")
                    return
                elif not self.looks.moving:
                    if last != "idle":
                        yield WatchEvent("idle")
                    last = "idle"
                    self.wait()
                    self.sleep(rest)
                settling = False
            except LibraryBusy as error:
                self.looks.forget(still)
                if last != "busy":
                    yield WatchEvent("busy", reason=str(error))
                last = "busy"
                self.sleep(BUSY_SECONDS)

    def _folders(self, before: dict[str, str]) -> Iterator[WatchEvent]:
        """Report what can no longer be read, and what can be again."""
        now = self.looks.absent
        for path in sorted(now.keys() - before.keys()):
            yield WatchEvent("absent", path, now[path])
        for path in sorted(before.keys() - now.keys()):
            yield WatchEvent("back", path)

    def _quick(self, paths: Sequence[str]) -> Iterator[WatchEvent]:
        report = self.add(paths, "quick")
        self._tried.difference_update(paths)
        self._again += [path for path, _ in report.failed]
        yield from _found(report)

    def _thorough(self, paths: Sequence[str]) -> Iterator[WatchEvent]:
        report = self.add(paths, "thorough")
        self._tried.update(paths)
        self._again = [path for path in self._again if path not in self._tried]
        waited = {*report.updated, *report.changed}
        yield from _found(report)
        yield from (WatchEvent("finished", path) for path in paths if path in waited)
        yield from (WatchEvent("failed", path, reason) for path, reason in report.failed)

    def _next_batch(self) -> list[str]:
        """Return the next files for the thorough pass, those first that searches returned."""
        returned = {content: place for place, content in enumerate(latest_returned(self.store.catalogue))}
        waiting = sorted(
            waiting_files(self.store.catalogue), key=lambda file: returned.get(file.content, len(returned))
        )
        batch: list[str] = []
        size = 0
        for path in (*self._again, *(file.path for file in waiting)):
            if path in self._tried or not Path(path).is_file():
                continue
            if batch and size >= BATCH_BYTES:
                break
            batch.append(path)
            size += Path(path).stat().st_size
        return batch


def _found(report: AddReport) -> Iterator[WatchEvent]:
    """Report the files that searches find from now on."""
    yield from (WatchEvent("added", path) for path in report.added)
    yield from (WatchEvent("changed", path) for path in report.changed)
    yield from (WatchEvent("moved", new, old) for old, new in report.moved)
    yield from (WatchEvent("copy", path) for path in report.duplicates)


class FileEvents:
    """Waits for file events where `watchfiles` and the system have them, for some seconds elsewhere."""

    def __init__(self, folders: Sequence[str]) -> None:
        self._folders = folders
        self._watched: set[tuple[str, int, int]] = set()
        self._changed, self._stop = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None

    def wait(self) -> None:
        """Return when files have changed, or when it is time to look anyway."""
        present = {found for folder in self._folders if (found := _identity(folder))}
        seconds = POLL_SECONDS
        if present != self._watched:
            self._stop.set()
            self._watched, self._stop = present, threading.Event()
            paths, stop = [path for path, _, _ in present], self._stop
            self._thread = threading.Thread(target=self._listen, args=(paths, stop), daemon=True)
            self._thread.start()
            seconds = STILL_SECONDS  # what changes before the thread listens makes no event
        elif self._thread is not None and self._thread.is_alive() and len(present) == len(self._folders):
            seconds = EVENTS_SECONDS
        self._changed.wait(seconds)
        self._changed.clear()

    def close(self) -> None:
        """Listen no longer, and end the wait."""
        self._stop.set()
        self._changed.set()

    def _listen(self, paths: Sequence[str], stop: threading.Event) -> None:
        try:
            from watchfiles import watch  # comes with `wordreel[serve]`

            for _ in watch(*paths, watch_filter=None, stop_event=stop, ignore_permission_denied=True):
                self._changed.set()
        except (ImportError, OSError, RuntimeError) as error:  # such as more folders than the system watches
            log.info("no file events: %s", error)


def _identity(folder: str) -> tuple[str, int, int] | None:
    """Return a folder with its device and number, which another disk at the same place does not have."""
    try:
        status = Path(folder).stat()
    except OSError:
        return None
    return folder, status.st_dev, status.st_ino


def watch_folders(
    store: LibraryStore, folders: Paths, add: RunAdd, within: Paths | None, once: bool
) -> Iterator[WatchEvent]:
    """Add what is in these folders and what comes; yield what happens, until closed or, with `once`, done."""
    roots = [canonical_path(folder) for folder in folders]
    events = FileEvents(roots)
    looks = FolderLooks(store.catalogue, roots, str(store.path), within)
    try:
        yield from FolderWatch(store, looks, add, events.wait).run(once)
    finally:
        events.close()
