"""Add files to the library: workers look into them, this thread alone writes what they found."""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from wordreel.experts.base import Expert
from wordreel.library.extract import Decoder, Panel
from wordreel.library.plan import Job, Plan, plan, recipe
from wordreel.library.progress import AddReport, Progress
from wordreel.library.record import forget_foreign, forget_lost_failures, record, record_failure
from wordreel.library.remove import drop_tracks, drop_unreferenced
from wordreel.library.store import LibraryStore
from wordreel.library.study import Claims, Desk, Failed, Foreign, Outcome, Ready, Waits, study
from wordreel.media.types import Window

PATIENCE = 5.0  # seconds a worker gets to notice that it should stop


@dataclass(frozen=True)
class _Began:
    job: Job


@dataclass(frozen=True)
class _Advanced:
    job: Job
    seconds: float
    share: float


_Message = _Began | _Advanced | Outcome | BaseException


def add(
    store: LibraryStore,
    paths: Sequence[str | os.PathLike[str]],
    experts: Sequence[Expert],
    fence: Decoder,
    jobs: int | None = None,
    progress: Callable[[Progress], None] | None = None,
    retry_failed: bool = False,
) -> AddReport:
    """Bring the library up to date with the files and folders named.

    Unchanged files are not read. Every file is one transaction, so this can be interrupted or killed at any
    moment and run again; it goes on where it stopped. Files that are gone are reported, not removed.
    """
    began = time.monotonic()
    report = AddReport()
    with store.writing():
        fingerprints = {expert.card.name: expert.fingerprint for expert in experts}
        made = plan(store.catalogue, paths, fingerprints, str(store.path), retry_failed, report)
        forget_lost_failures(store, paths)
        store.track_files.discard_passing()
        if made.jobs:
            crew = _Crew(store, made, Panel(experts), fence, fingerprints, report, progress, began)
            crew.work(max(1, min(jobs or default_jobs(), len(made.jobs))))
        drop_unreferenced(store.catalogue, store.track_files)
    report.seconds = time.monotonic() - began
    return report


def default_jobs() -> int:
    """One file more than there are cores, so that none waits while a file is decoded; eight are enough."""
    return min(8, len(os.sched_getaffinity(0)) + 1)


@dataclass
class _Crew:
    store: LibraryStore
    plan: Plan
    panel: Panel
    fence: Decoder
    fingerprints: dict[str, str]
    report: AddReport
    progress: Callable[[Progress], None] | None
    began: float
    todo: queue.SimpleQueue[Job | None] = field(default_factory=queue.SimpleQueue)
    messages: queue.SimpleQueue[_Message] = field(default_factory=queue.SimpleQueue)
    stop: threading.Event = field(default_factory=threading.Event)
    claims: Claims = field(default_factory=Claims)
    waiting: dict[str, list[Job]] = field(default_factory=dict)
    current: dict[str, tuple[float, float]] = field(default_factory=dict)  # path -> (bytes, seconds) so far
    replaced: set[str] = field(default_factory=set)  # track files that may have lost their last use
    done: int = 0
    done_bytes: int = 0

    def work(self, count: int) -> None:
        for job in self.plan.jobs:
            self.todo.put(job)
        # Daemons: an expert deep in a long file must not keep an interrupted program from ending.
        workers = [threading.Thread(target=self._worker, daemon=True, name=f"add-{n}") for n in range(count)]
        for worker in workers:
            worker.start()
        try:
            while self.done < len(self.plan.jobs):
                self._handle(self.messages.get())
        finally:
            self.stop.set()
            for _ in workers:
                self.todo.put(None)
            deadline = time.monotonic() + PATIENCE
            for worker in workers:
                worker.join(max(0.0, deadline - time.monotonic()))
            self.store.track_files.discard_passing()
        drop_tracks(self.store.catalogue, self.store.track_files, sorted(self.replaced))

    def _worker(self) -> None:
        desk = Desk(
            self.store, self.fence, self.panel, self.fingerprints, self.claims, self.stop, self._on_window
        )
        while (job := self.todo.get()) is not None and not self.stop.is_set():
            self.messages.put(_Began(job))
            try:
                self.messages.put(study(desk, job))
            except BaseException as error:
                self.messages.put(error)

    def _on_window(self, job: Job, window: Window, duration: float) -> None:
        share = min(1.0, window.start / duration) if duration > 0 else 0.0
        self.messages.put(_Advanced(job, window.start, share))

    def _handle(self, message: _Message) -> None:
        if isinstance(message, BaseException):
            raise message
        if isinstance(message, _Began):
            self.current[message.job.path] = (0.0, 0.0)
        elif isinstance(message, _Advanced):
            self.current[message.job.path] = (message.share * message.job.stamp.size, message.seconds)
        elif isinstance(message, Waits):
            self.current.pop(message.job.path, None)
            if message.content in self.claims:
                self.waiting.setdefault(message.content, []).append(message.job)
            else:
                self.todo.put(message.job)
        else:
            self._finish(message)
        if self.progress:
            self.progress(self._snapshot())

    def _finish(self, outcome: Ready | Failed | Foreign) -> None:
        job = outcome.job
        content = ""
        if isinstance(outcome, Ready):
            content = outcome.content
            self.replaced.update(t.hash for t in self.store.tracks(content) if t.hash)
            record(self.store, outcome, self.report)
        elif isinstance(outcome, Failed):
            content = outcome.content
            record_failure(self.store, outcome, recipe(self.fingerprints))
            self.report.failed.append((job.path, outcome.reason))
        else:
            forget_foreign(self.store, job)
            self.report.ignored += 1
        self.current.pop(job.path, None)
        self.done += 1
        self.done_bytes += job.stamp.size
        if content:
            self.claims.release(content)
            for waiting in self.waiting.pop(content, []):
                self.todo.put(waiting)

    def _snapshot(self) -> Progress:
        return Progress(
            files_done=self.done,
            files_total=len(self.plan.jobs),
            bytes_done=self.done_bytes + sum(b for b, _ in self.current.values()),
            bytes_total=self.plan.bytes,
            media_seconds=self.report.media_seconds + sum(s for _, s in self.current.values()),
            seconds=time.monotonic() - self.began,
            failures=len(self.report.failed),
            current=tuple(self.current),
        )
