"""The job queue: one job after the other, in a thread that watches the process running it.

A thorough pass gives way: it stops when another job comes, and resumes when no other waits.
"""

from __future__ import annotations

import logging
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Protocol

from wordreel.catalogue import jobs as table
from wordreel.catalogue.jobs import Job
from wordreel.catalogue.store import LibraryStore
from wordreel.errors import WordreelError
from wordreel.serve.problems import INTERNAL, Problem, page_message
from wordreel.serve.scratch import JobSignals

log = logging.getLogger("wordreel.serve")

SAVE_EVERY = 0.5  # seconds between two writes of a job's progress
RENEW_EVERY = 1.0  # seconds between two renewals of the claim of a running job
LOOK_EVERY = 0.1  # seconds between two looks at whether a running job has to give way
GIVE_WAY_SECONDS = 10.0  # until a request that writes no longer waits for a thorough pass to stop
MAX_WAITING = 100

ReportProgress = Callable[[dict[str, Any]], None]


class JobRunner(Protocol):
    """Runs a job: reports progress, stops soon after `stop` is set, returns a report or raises."""

    def __call__(
        self, kind: str, request: dict[str, Any], on_progress: ReportProgress, stop: threading.Event
    ) -> dict[str, Any]:
        """Run a job; `JobStopped` where `stop` ended it."""
        ...


class JobStopped(Exception):
    """A job stopped on request."""


class JobQueue:
    """Runs the library's jobs, those that no other server has claimed. Calls back in its own thread."""

    def __init__(
        self,
        store: LibraryStore,
        runner: JobRunner,
        signals: JobSignals,
        on_progress: Callable[[], None] = lambda: None,
        on_end: Callable[[Job], None] = lambda job: None,
    ) -> None:
        self._store, self._runner, self._on_progress, self._on_end = store, runner, on_progress, on_end
        self.signals = signals
        self._wake = threading.Condition()
        self._current: int | None = None  # the number of the job that runs here
        self._stop = threading.Event()
        self._cancelled = False
        self._closing = False
        self.server = f"{os.getpid()}-{secrets.token_hex(8)}"  # who claims the jobs
        self._thread = threading.Thread(target=self._run, name="jobs", daemon=True)

    def start(self) -> None:
        """Start with what an earlier server left unfinished."""
        self._thread.start()

    def close(self) -> None:
        """Stop the running job without ending it: the next server resumes it."""
        with self._wake:
            self._closing = True
            self._stop.set()
            self._wake.notify_all()
        if self._thread.is_alive():
            self._thread.join(15.0)

    def put(self, kind: str, title: str, request: dict[str, Any]) -> Job:
        """Append a job to the queue; raise a `Problem` where too many wait."""
        with self._wake:
            if self.waiting() >= MAX_WAITING:
                raise Problem(
                    429, "too_many_jobs", f"{MAX_WAITING} tasks are waiting; try again when some are done"
                )
            job = table.add_job(self._store, kind, title, request)
            self._wake.notify_all()
        return job

    @contextmanager
    def give_way(self) -> Iterator[None]:
        """Let somebody else write to the library: a thorough pass stops, and resumes at the end of the block.

        Any other job goes on, and keeps the library to itself.
        """

        def runs() -> bool:
            job = self.running()
            return job is not None and job.kind == table.THOROUGH

        with self.signals.writing(runs, GIVE_WAY_SECONDS):
            yield

    def get(self, number: int) -> Job:
        """Return a job as it is now; raise a `Problem` where there is none."""
        job = table.read_job(self._store, number) if 0 < number < 2**63 else None
        if job is None:
            raise Problem(404, "not_found", "this work is no longer known")
        return job

    def latest(self) -> list[Job]:
        """Return the latest jobs, newest first."""
        return table.latest_jobs(self._store)

    def cancel(self, number: int) -> Job:
        """End a job that waits or runs; one that has ended stays as it is."""
        with self._wake:
            job = self.get(number)
            if self._current == number:
                self._cancelled = True
                self._stop.set()
            elif not job.ended:
                table.cancel_job(self._store, number)
        deadline = time.monotonic() + 10.0
        while not (job := self.get(number)).ended and time.monotonic() < deadline:
            time.sleep(0.05)
        return job

    def pause(self, paused: bool) -> None:
        """Let no job run until it is resumed; the running one stops and waits with the others."""
        self.signals.paused = paused
        with self._wake:
            self._wake.notify_all()

    def waiting(self) -> int:
        """Return how many jobs wait or run."""
        return len(table.unfinished_jobs(self._store))

    def running(self) -> Job | None:
        """Return the job that runs now, here or at another server."""
        return next((job for job in self.latest() if job.state == table.RUNNING), None)

    def _run(self) -> None:
        while True:
            with self._wake:
                job = None
                while not self._closing and (job := self._next()) is None:
                    self._wake.wait(1.0)
                if self._closing or job is None:
                    return
                self._stop.clear()
                self._cancelled = False
                self._current = job.id
            self._run_job(job)

    def _next(self) -> Job | None:
        """Claim the next job, unless another server runs one."""
        if self.signals.paused or self.signals.writers or not self.waiting():
            return None
        return table.claim_job(self._store, self.server)

    def _keep_claim(self, job: Job, ended: threading.Event) -> None:
        """Renew the claim of a running job; stop the job where it was cancelled, or has to give way."""
        renewed = time.monotonic()
        while not ended.wait(LOOK_EVERY):
            try:
                if self._gives_way(job):
                    self._stop.set()
                if time.monotonic() - renewed < RENEW_EVERY:
                    continue
                renewed = time.monotonic()
                if not table.renew_claim(self._store, job.id, self.server):
                    self._cancelled = table.is_claimed_by(self._store, job.id, self.server)
                    self._stop.set()
                    return
            except WordreelError as error:
                log.warning("the claim of job %d is not renewed: %s", job.id, error)

    def _gives_way(self, job: Job) -> bool:
        """Whether a running job has to stop for now: it resumes later."""
        if self.signals.paused:
            return True
        if job.kind != table.THOROUGH:
            return False
        return self.signals.writers or any(
            other.kind != table.THOROUGH for other in table.unfinished_jobs(self._store)
        )

    def _run_job(self, job: Job) -> None:
        saved_at, latest = 0.0, None

        def on_progress(progress: dict[str, Any]) -> None:
            nonlocal saved_at, latest
            latest = progress
            if time.monotonic() - saved_at > SAVE_EVERY:
                table.save_progress(self._store, job.id, progress)
                self._on_progress()
                saved_at = time.monotonic()

        state, report, error = table.DONE, None, None
        ended = threading.Event()
        threading.Thread(target=self._keep_claim, args=(job, ended), daemon=True).start()
        try:
            resumed = {"resumed": True} if job.started_at is not None else {}
            report = self._runner(job.kind, job.request | resumed, on_progress, self._stop)
        except JobStopped:
            if not self._cancelled:  # this server stops, or the job belongs to another one now
                table.release_job(self._store, job.id, self.server)
                self._end_current()
                return
            state = table.CANCELLED
        except WordreelError as problem:
            state, error = table.FAILED, page_message(problem)
        except Exception as problem:
            log.error("job %d failed: %r", job.id, problem, exc_info=problem)
            state, error = table.FAILED, INTERNAL
        finally:
            ended.set()
        try:
            if latest is not None:
                table.save_progress(self._store, job.id, latest)
            self._on_end(replace(job, state=state))  # before it counts as done: searches must see its result
        except Exception as problem:
            log.error("after job %d: %r", job.id, problem, exc_info=problem)
        table.end_job(self._store, job.id, state, report, error)
        self._end_current()

    def _end_current(self) -> None:
        with self._wake:
            self._current = None
            self._wake.notify_all()
