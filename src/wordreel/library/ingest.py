"""Add files to a library: scan and plan, process files in worker threads, record results in one writer."""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from wordreel.errors import LibraryError
from wordreel.experts.base import Expert
from wordreel.library.add_report import AddProgress, AddProgressCallback, AddReport
from wordreel.library.catalogue import Catalogue
from wordreel.library.extract import MediaDecoder
from wordreel.library.extractor import Extractor, LocalExtractor
from wordreel.library.ingest_file import (
    AddTask,
    ContentLocks,
    Deferred,
    EmbedContent,
    FailedFile,
    FileProcessor,
    NotMediaFile,
    ProcessedFile,
    ProcessOutcome,
    expert_set_id,
    missing_experts,
    record_failure,
    record_file,
    remove_lost_failures,
    remove_not_media,
)
from wordreel.library.passes import Pass, is_quick, latest_returned, quick_contents
from wordreel.library.paths import canonical_path, from_blob, may_exist, prefix_bounds, to_blob
from wordreel.library.remove import drop_tracks, drop_unreferenced
from wordreel.library.scan import FileStamp, IgnoredFile, ScannedFile, scan
from wordreel.library.store import LibraryStore
from wordreel.library.task_queue import TaskQueue

STAGES: dict[Pass, str] = {"quick": "taking a quick look", "thorough": "adding files"}
STOP_TIMEOUT = 5.0  # seconds a worker gets to notice that it should stop
CLOCK_TICK_NS = 50_000_000  # file times tick this coarsely at worst


def add(
    store: LibraryStore,
    paths: Sequence[str | os.PathLike[str]],
    experts: Sequence[Expert],
    decoder: MediaDecoder,
    jobs: int | None = None,
    on_progress: AddProgressCallback | None = None,
    retry_failed: bool = False,
    within: Sequence[str | os.PathLike[str]] | None = None,
    keep_clips: bool = False,
) -> AddReport:
    """Bring the library up to date with files and folders.

    Every file is one transaction, so an interrupted or killed run resumes with the same call. Unchanged
    files are not read. Files that are gone are reported, not removed.

    Args:
        store: The library to add to.
        paths: Files and folders; folders are walked recursively.
        experts: Loaded experts to run on every file.
        decoder: Decodes the files, usually a `wordreel.media.Fence`.
        jobs: Files processed at once; `default_jobs()` if None.
        on_progress: Called with an `AddProgress` whenever a file starts, advances or ends.
        retry_failed: Also process unchanged files that failed before.
        within: Refuse files whose real path, links resolved, is in none of these folders.
        keep_clips: Leave the clips of known contents as they are, and with them their embeddings. For experts
            that no embedding reads yet; otherwise new tracks cut new clips, which are embedded again.

    Returns:
        What was added, changed, moved, skipped and what failed.

    Raises:
        LibraryBusy: Another process is writing to the library.
        LibraryError: The disk is full or the catalogue is damaged.
        WeightsError: An expert's weights are missing or damaged.

    >>> import cv2, numpy, tempfile
    >>> from pathlib import Path
    >>> from wordreel.experts.shots import ShotsExpert
    >>> from wordreel.media import Fence
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = cv2.imwrite(str(folder / "black.png"), numpy.zeros((20, 30, 3), numpy.uint8))
    >>> with LibraryStore.create_or_open(folder / "library") as store, Fence() as fence:
    ...     report = add(store, [folder], [ShotsExpert()], fence)
    >>> len(report.added), report.failed
    (1, [])
    """
    extractor = LocalExtractor(experts, decoder, store.track_files)
    return add_with(
        extractor, store, paths, jobs or default_jobs(), on_progress, retry_failed, within, keep_clips
    )


def add_with(
    extractor: Extractor,
    store: LibraryStore,
    paths: Sequence[str | os.PathLike[str]],
    jobs: int,
    on_progress: AddProgressCallback | None = None,
    retry_failed: bool = False,
    within: Sequence[str | os.PathLike[str]] | None = None,
    keep_clips: bool = False,
    analysis: Pass = "thorough",
    only_waiting: bool = False,
    least_bytes: int = 0,
    embed: EmbedContent | None = None,
) -> AddReport:
    """`add` wherever the extractor works; only this process writes to the catalogue.

    The quick pass takes files whose content the library does not know, or none of them where they have fewer
    than `least_bytes` in all. With `only_waiting`, the thorough pass takes only unchanged files that have had
    the quick one. `embed` embeds a content whose clips are replaced, so that searches find it all the time.
    """
    started = time.monotonic()
    report = AddReport()
    roots = _possible(paths, report)
    with store.writing():
        planner = _Planner(store.catalogue, extractor.fingerprints, retry_failed, analysis == "quick", report)
        tasks = planner.plan(roots, str(store.path), within)
        if only_waiting:
            waiting = quick_contents(store.catalogue)
            tasks = [task for task in tasks if task.last_content in waiting]
        if sum(task.stamp.size for task in tasks) < least_bytes:
            tasks = []
        remove_lost_failures(store, roots)
        store.track_files.clear_staging()
        if tasks:
            run = _AddRun(store, tasks, extractor, report, on_progress, started, keep_clips, analysis, embed)
            run.run(max(1, min(jobs, len(tasks))))
        drop_unreferenced(store.catalogue, store.track_files)
    report.seconds = time.monotonic() - started
    return report


def default_jobs() -> int:
    """As many files as there are cores, at most eight: the experts of each work while it is decoded."""
    return min(8, len(os.sched_getaffinity(0)))


def _possible(paths: Sequence[str | os.PathLike[str]], report: AddReport) -> list[str]:
    """The paths in their one spelling; a name that no file can have is a failure like any other."""
    found = []
    for path in paths:
        try:
            found.append(canonical_path(path))
        except LibraryError as error:
            report.failed.append((os.fspath(path), str(error)))
    return found


@dataclass(frozen=True)
class _Planner:
    """Lists the files to process and counts the others in `report`; reads only folders and first bytes."""

    catalogue: Catalogue
    fingerprints: Mapping[str, str]
    retry: bool
    quick: bool
    report: AddReport

    def plan(
        self,
        roots: Sequence[str],
        skip: str,
        within: Sequence[str | os.PathLike[str]] | None,
    ) -> list[AddTask]:
        tasks: list[AddTask] = []
        seen: set[str] = set()
        for item in scan(roots, skip=skip, within=within):
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
        return tasks

    def _task(self, item: ScannedFile) -> AddTask | None:
        """The task for one file; None if it is up to date or failed before in the same way."""
        now = time.time_ns()
        stamp, key = item.stamp, to_blob(item.path)
        failed = self.catalogue.one("SELECT size, mtime_ns, recipe, reason FROM failures WHERE path = ?", key)
        same = failed and not self.retry and failed[:2] == (stamp.size, stamp.mtime_ns)
        # Whatever failed, the quick pass leaves it to the thorough one.
        if failed and same and (self.quick or failed[2] == expert_set_id(self.fingerprints)):
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
        if self.quick:
            return True
        missing = missing_experts(self.catalogue, content, self.fingerprints)
        return not missing and not is_quick(self.catalogue, content)


def _gone(catalogue: Catalogue, roots: Sequence[str], seen: set[str]) -> list[str]:
    """Known files at or below `roots`, canonical paths, that are no longer there."""
    known: set[str] = set()
    for root in roots:
        low, high = prefix_bounds(root)
        rows = catalogue.rows(
            "SELECT path FROM files WHERE path = ? OR (path >= ? AND path < ?)", to_blob(root), low, high
        )
        known.update(from_blob(path) for (path,) in rows)
    return sorted((path for path in known - seen if not may_exist(path)), key=to_blob)


@dataclass(frozen=True)
class _Started:
    task: AddTask


@dataclass(frozen=True)
class _Advanced:
    task: AddTask
    seconds: float
    fraction: float


_Message = _Started | _Advanced | ProcessOutcome | BaseException


@dataclass
class _AddRun:
    """Worker threads that process files, and the writer (the calling thread) that records the results."""

    store: LibraryStore
    tasks: list[AddTask]
    extractor: Extractor
    report: AddReport
    on_progress: AddProgressCallback | None
    started: float
    keep_clips: bool
    analysis: Pass
    embed: EmbedContent | None
    messages: queue.SimpleQueue[_Message] = field(default_factory=queue.SimpleQueue)
    stop: threading.Event = field(default_factory=threading.Event)
    locks: ContentLocks = field(default_factory=ContentLocks)
    deferred: dict[str, list[AddTask]] = field(default_factory=dict)  # content -> files that wait for it
    current: dict[str, tuple[float, float]] = field(default_factory=dict)  # path -> (bytes, seconds) so far
    replaced: set[str] = field(default_factory=set)  # track files that may have lost their last use
    done: int = 0
    done_bytes: int = 0
    total_bytes: int = 0

    def __post_init__(self) -> None:
        self.todo = TaskQueue(self.tasks, lambda: latest_returned(self.store.catalogue))
        self.total_bytes = sum(task.stamp.size for task in self.tasks)

    def run(self, workers: int) -> None:
        # Daemons: an expert deep in a long file must not keep an interrupted program from ending.
        threads = [threading.Thread(target=self._work, daemon=True, name=f"add-{n}") for n in range(workers)]
        for thread in threads:
            thread.start()
        try:
            while self.done < len(self.tasks):
                self._handle(self.messages.get())
        finally:
            self.stop.set()
            self.todo.close()
            deadline = time.monotonic() + STOP_TIMEOUT
            for thread in threads:
                thread.join(max(0.0, deadline - time.monotonic()))
            self.store.track_files.clear_staging()
        drop_tracks(self.store.catalogue, self.store.track_files, sorted(self.replaced))

    def _work(self) -> None:
        processor = FileProcessor(
            self.store,
            self.extractor,
            self.locks,
            self.stop,
            self._on_position,
            self.keep_clips,
            self.analysis == "quick",
        )
        while (task := self.todo.get()) is not None and not self.stop.is_set():
            self.messages.put(_Started(task))
            try:
                self.messages.put(processor.process(task))
            except BaseException as error:
                self.messages.put(error)

    def _on_position(self, task: AddTask, seconds: float, duration: float) -> None:
        fraction = min(1.0, seconds / duration) if duration > 0 else 0.0
        self.messages.put(_Advanced(task, seconds, fraction))

    def _handle(self, message: _Message) -> None:
        if isinstance(message, BaseException):
            raise message
        if isinstance(message, _Started):
            self.current[message.task.path] = (0.0, 0.0)
        elif isinstance(message, _Advanced):
            self.current[message.task.path] = (message.fraction * message.task.stamp.size, message.seconds)
        elif isinstance(message, Deferred):
            self.current.pop(message.task.path, None)
            if message.content in self.locks:
                self.deferred.setdefault(message.content, []).append(message.task)
            else:
                self.todo.put(message.task)
        else:
            self._finish(message)
        if self.on_progress:
            self.on_progress(self._snapshot())

    def _finish(self, outcome: ProcessedFile | FailedFile | NotMediaFile) -> None:
        task = outcome.task
        content = "" if isinstance(outcome, NotMediaFile) else outcome.content
        if isinstance(outcome, ProcessedFile):
            self.replaced.update(track.hash for track in self.store.tracks(content) if track.hash)
            self._count(outcome)
        elif isinstance(outcome, FailedFile):
            record_failure(self.store, outcome, expert_set_id(self.extractor.fingerprints))
            self.report.failed.append((task.path, outcome.reason))
        else:
            remove_not_media(self.store, task)
            self.report.ignored += 1
        self.current.pop(task.path, None)
        self.done += 1
        self.done_bytes += task.stamp.size
        if content:
            self.locks.release(content)
            for waiting in self.deferred.pop(content, []):
                self.todo.put(waiting)

    def _count(self, processed: ProcessedFile) -> None:
        """Record a processed file and count what changed."""
        path, report = processed.task.path, self.report
        self.store.track_files.commit_all([r.staged for r in processed.results if r.staged is not None])
        change, old_path = record_file(self.store, processed, self.embed)
        if change == "moved":
            report.moved.append((old_path, path))
            if old_path in report.gone:
                report.gone.remove(old_path)
        elif change == "unchanged":
            report.skipped += 1
        else:
            {
                "added": report.added,
                "changed": report.changed,
                "updated": report.updated,
                "duplicate": report.duplicates,
            }[change].append(path)
        faults = [(path, result.expert, result.fault) for result in processed.results if result.fault]
        report.degenerate += faults
        report.media_seconds += processed.seconds

    def _snapshot(self) -> AddProgress:
        return AddProgress(
            STAGES[self.analysis],
            self.done,
            len(self.tasks),
            bytes_done=self.done_bytes + sum(size for size, _ in self.current.values()),
            bytes_total=self.total_bytes,
            media_seconds=self.report.media_seconds + sum(seconds for _, seconds in self.current.values()),
            seconds=time.monotonic() - self.started,
            failures=len(self.report.failed),
            current=tuple(self.current),
            analysis=self.analysis,
        )
