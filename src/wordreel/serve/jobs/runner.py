"""One job after the other, in a thread that watches over whoever does the work."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

from wordreel.errors import WordreelError
from wordreel.library.store import LibraryStore
from wordreel.serve.jobs import rows
from wordreel.serve.jobs.rows import Job
from wordreel.serve.problems import INTERNAL, Problem, page_message

log = logging.getLogger("wordreel.serve")

WRITE_EVERY = 1.0  # seconds between two looks at the progress that survive a restart
MOST_WAITING = 100

Tell = Callable[[dict[str, Any]], None]


class Work(Protocol):
    """Does a job: tells its progress, stops soon after `stop` is set, returns a report or raises."""

    def __call__(
        self, kind: str, request: dict[str, Any], tell: Tell, stop: threading.Event
    ) -> dict[str, Any]: ...


class Stopped(Exception):
    """The work was told to stop, and did."""


class Jobs:
    """The queue. `moved` hears of progress and `ended` of the end, in the jobs' own thread."""

    def __init__(
        self,
        store: LibraryStore,
        work: Work,
        moved: Callable[[Job], None] = lambda job: None,
        ended: Callable[[Job], None] = lambda job: None,
    ) -> None:
        self._store, self._work, self._moved, self._ended = store, work, moved, ended
        self._wake = threading.Condition()
        self._current: Job | None = None
        self._stop = threading.Event()
        self._cancelled = False
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="jobs", daemon=True)

    def start(self) -> None:
        """Begin, with what an earlier server left unfinished."""
        for job in rows.unfinished(self._store):
            if job.state == rows.RUNNING:
                self._store.catalogue.run("UPDATE jobs SET state = ? WHERE id = ?", rows.QUEUED, job.id)
        self._thread.start()

    def close(self) -> None:
        """Stop the running job without ending it: the next server takes it up again."""
        with self._wake:
            self._closing = True
            self._stop.set()
            self._wake.notify_all()
        if self._thread.is_alive():
            self._thread.join(15.0)

    def put(self, kind: str, title: str, request: dict[str, Any]) -> Job:
        with self._wake:
            if len(rows.unfinished(self._store)) >= MOST_WAITING:
                raise Problem(
                    429, "too_many_jobs", f"{MOST_WAITING} jobs are waiting; try again when some are done"
                )
            job = rows.put(self._store, kind, title, request)
            self._wake.notify_all()
        return job

    def get(self, number: int) -> Job:
        """A job as it is now; a `Problem` where there is none."""
        current = self._current
        if current is not None and current.id == number:
            return current
        found = rows.get(self._store, number) if 0 < number < 2**63 else None
        if found is None:
            raise Problem(404, "not_found", "there is no such job (any more); see /api/jobs")
        return found

    def latest(self) -> list[Job]:
        """Newest first."""
        current = self._current
        return [
            current if current is not None and job.id == current.id else job
            for job in rows.latest(self._store)
        ]

    def cancel(self, number: int) -> Job:
        """End a job that waits or runs; one that has ended stays as it is."""
        with self._wake:
            job = self.get(number)
            if self._current is not None and self._current.id == number:
                self._cancelled = True
                self._stop.set()
            elif not job.ended:
                rows.end(self._store, number, rows.CANCELLED)
        deadline = time.monotonic() + 10.0
        while not (job := self.get(number)).ended and time.monotonic() < deadline:
            time.sleep(0.05)
        return job

    def waiting(self) -> int:
        return len(rows.unfinished(self._store))

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
                rows.begin(self._store, job.id)
                self._current = rows.get(self._store, job.id)
            self._do(job)

    def _next(self) -> Job | None:
        found = rows.unfinished(self._store)
        return found[0] if found else None

    def _do(self, job: Job) -> None:
        written = 0.0

        def tell(progress: dict[str, Any]) -> None:
            nonlocal written
            if self._current is not None:
                self._current = replace(self._current, progress=progress)
                self._moved(self._current)
            if time.monotonic() - written > WRITE_EVERY:
                rows.advance(self._store, job.id, progress)
                written = time.monotonic()

        state, report, error = rows.DONE, None, None
        try:
            again = {"resumed": True} if job.started_at is not None else {}
            report = self._work(job.kind, job.request | again, tell, self._stop)
        except Stopped:
            if self._closing and not self._cancelled:
                return  # still unfinished, as the table says
            state = rows.CANCELLED
        except WordreelError as problem:
            state, error = rows.FAILED, page_message(problem)
        except Exception as problem:
            log.error("job %d failed: %r", job.id, problem, exc_info=problem)
            state, error = rows.FAILED, INTERNAL
        progress = self._current.progress if self._current is not None else None
        try:
            if progress is not None:
                rows.advance(self._store, job.id, progress)
            ended = replace(job, state=state)
            self._ended(ended)  # first: who hears that it is done must find what it did
        except Exception as problem:
            log.error("after job %d: %r", job.id, problem, exc_info=problem)
        rows.end(self._store, job.id, state, report, error)
        with self._wake:
            self._current = None
