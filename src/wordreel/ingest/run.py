"""One pass over planned files: worker threads process them, and the calling thread records the results."""

from __future__ import annotations

import queue
import threading
import time
from dataclasses import dataclass, field

from wordreel.catalogue.passes import Pass, latest_returned
from wordreel.catalogue.remove import drop_tracks
from wordreel.catalogue.store import LibraryStore
from wordreel.ingest.add_report import AddProgress, AddProgressCallback, AddReport
from wordreel.ingest.extract import Extractor
from wordreel.ingest.file_processor import ContentLocks, DecodeBudget, FileProcessor, expert_set_id
from wordreel.ingest.record_file import record_failure, record_file, remove_not_media
from wordreel.ingest.tasks import (
    AddOptions,
    AddTask,
    Deferred,
    FailedFile,
    NotMediaFile,
    ProcessedFile,
    ProcessOutcome,
    TaskQueue,
)

STAGES: dict[Pass, str] = {"quick": "taking a quick look", "thorough": "adding files"}
STOP_TIMEOUT = 5.0  # seconds a worker gets to notice that it should stop


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
class AddRun:
    """Worker threads that process files, and the writer (the calling thread) that records the results."""

    store: LibraryStore
    tasks: list[AddTask]
    extractor: Extractor
    report: AddReport
    on_progress: AddProgressCallback | None
    started: float
    options: AddOptions
    messages: queue.SimpleQueue[_Message] = field(default_factory=queue.SimpleQueue)
    stop: threading.Event = field(default_factory=threading.Event)
    locks: ContentLocks = field(default_factory=ContentLocks)
    budget: DecodeBudget = field(default_factory=DecodeBudget)
    deferred: dict[str, list[AddTask]] = field(default_factory=dict)  # content -> files that wait for it
    current: dict[str, tuple[float, float]] = field(default_factory=dict)  # path -> (bytes, seconds) so far
    replaced: set[str] = field(default_factory=set)  # track files that may have lost their last use
    done: int = 0
    done_bytes: int = 0
    total_bytes: int = 0

    def __post_init__(self) -> None:
        self.todo = TaskQueue(self.tasks, lambda: latest_returned(self.store.catalogue))
        self.total_bytes = sum(task.stamp.size for task in self.tasks)

    def run(self, files: int) -> None:
        """Process the tasks, `files` at once, and one more while another has only sound left to work on."""
        workers = min(files + (files > 1), len(self.tasks))
        self.budget = DecodeBudget(files=files)
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
            self.budget,
            self.stop,
            self._on_position,
            self.options,
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
        change, old_path = record_file(self.store, processed, self.options.embed)
        if change == "moved":
            report.moved.append((old_path, path))
            if old_path in report.gone:
                report.gone.remove(old_path)
        elif change == "unchanged":
            report.skipped += 1
        else:
            paths: list[str] = getattr(report, change)
            paths.append(path)
        faults = [(path, result.expert, result.fault) for result in processed.results if result.fault]
        report.degenerate += faults
        report.media_seconds += processed.seconds

    def _snapshot(self) -> AddProgress:
        return AddProgress(
            STAGES[self.options.analysis],
            self.done,
            len(self.tasks),
            bytes_done=self.done_bytes + sum(size for size, _ in self.current.values()),
            bytes_total=self.total_bytes,
            media_seconds=self.report.media_seconds + sum(seconds for _, seconds in self.current.values()),
            seconds=time.monotonic() - self.started,
            failures=len(self.report.failed),
            current=tuple(self.current),
            analysis=self.options.analysis,
        )
