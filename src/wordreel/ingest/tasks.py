"""The files of an `add` on their way: from the plan to a worker thread, and from there to the writer."""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from os import PathLike

from wordreel.catalogue.clips import ClipBounds
from wordreel.catalogue.passes import Pass
from wordreel.catalogue.records import FileStamp
from wordreel.ingest.extract import ExpertResult
from wordreel.media.types import MediaInfo

EmbedContent = Callable[[str], None]
"""Embeds the clips of a content as the catalogue has them inside the transaction that calls it."""


@dataclass(frozen=True)
class AddOptions:
    """What one pass of an `add` does with the files that it finds.

    Args:
        retry_failed: Also process unchanged files that failed before.
        within: Refuse files whose real path, links resolved, is in none of these folders.
        keep_clips: Leave the clips of known contents as they are.
        analysis: The pass. The quick one takes only files whose content the library does not know.
        only_waiting: Take only unchanged files that have had the quick pass alone.
        least_bytes: Take no files where they have fewer bytes in all.
        embed: Embeds a content whose clips are replaced, so that searches find it all the time.
    """

    retry_failed: bool = False
    within: Sequence[str | PathLike[str]] | None = None
    keep_clips: bool = False
    analysis: Pass = "thorough"
    only_waiting: bool = False
    least_bytes: int = 0
    embed: EmbedContent | None = None

    @property
    def quick(self) -> bool:
        """Return whether this is the quick pass."""
        return self.analysis == "quick"


@dataclass(frozen=True)
class AddTask:
    """A file to process. `content` is set if the file is unchanged and only experts are missing.

    `last_content` is what it was when it last had the same stamp; it nearly always still is.
    """

    path: str
    stamp: FileStamp
    expected: bool  # report it if it is not media
    checked_ns: int
    content: str | None = None
    last_content: str | None = None


@dataclass(frozen=True)
class ProcessedFile:
    """Everything to record about a file.

    `info` is set if the content is new to the library, or new to the thorough pass; then `analysis` is the
    pass that the content has had once this is recorded.
    """

    task: AddTask
    content: str
    info: MediaInfo | None
    results: tuple[ExpertResult, ...]
    clips: tuple[ClipBounds, ...]
    seconds: float
    analysis: Pass = "thorough"


@dataclass(frozen=True)
class Deferred:
    """Another worker is processing the same content; try again when it is done."""

    task: AddTask
    content: str


@dataclass(frozen=True)
class FailedFile:
    """A file that could not be processed, and why. `content` is the lock to release, if one was acquired."""

    task: AddTask
    reason: str
    content: str = ""


@dataclass(frozen=True)
class NotMediaFile:
    """Not media after all, and not expected to be."""

    task: AddTask


ProcessOutcome = ProcessedFile | Deferred | FailedFile | NotMediaFile


class TaskQueue:
    """What searches returned comes first, the latest of it, then the newest files. Threads share it.

    `returned` is asked whenever a file is taken, so a search changes what comes next even in a run of hours.
    """

    def __init__(self, tasks: Iterable[AddTask], returned: Callable[[], Sequence[str]]) -> None:
        self._returned = returned
        self._tasks: dict[int, AddTask] = {}
        self._by_content: dict[str, list[int]] = {}
        self._newest: list[tuple[int, int]] = []
        self._ready = threading.Condition()
        self._number = 0
        self._closed = False
        for task in tasks:
            self.put(task)

    def put(self, task: AddTask) -> None:
        """Add a task, and wake a worker."""
        with self._ready:
            self._number += 1
            self._tasks[self._number] = task
            if task.last_content is not None:
                self._by_content.setdefault(task.last_content, []).append(self._number)
            heapq.heappush(self._newest, (-task.stamp.mtime_ns, self._number))
            self._ready.notify()

    def get(self) -> AddTask | None:
        """Wait for the next task; None once the queue is closed."""
        with self._ready:
            while not self._tasks and not self._closed:
                self._ready.wait()
            return None if self._closed else self._tasks.pop(self._next())

    def close(self) -> None:
        """Let everyone who waits, or comes, go without a task."""
        with self._ready:
            self._closed = True
            self._ready.notify_all()

    def _next(self) -> int:
        if self._by_content:
            for content in self._returned():
                for number in self._by_content.pop(content, ()):
                    if number in self._tasks:
                        return number
        while True:
            _, number = heapq.heappop(self._newest)
            if number in self._tasks:
                return number
