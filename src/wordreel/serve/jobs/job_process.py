"""What each kind of job does with a library, in a process of its own.

Searching stays fast, and stopping a job is a kill that loses nothing. When the server is gone the process
ends; the next server resumes the job.
"""

from __future__ import annotations

import os
import threading
from dataclasses import asdict
from pathlib import Path, PurePath
from typing import Any

from wordreel.catalogue.jobs import THOROUGH
from wordreel.catalogue.passes import Pass
from wordreel.errors import LibraryBusy, LibraryError, WordreelError
from wordreel.ingest.add_report import AddProgress, AddReport, merge_passes
from wordreel.library import Library
from wordreel.progress import Progress, ProgressCallback
from wordreel.serve.display import display_path
from wordreel.serve.jobs.queue import JobStopped, ReportProgress
from wordreel.serve.problems import page_message
from wordreel.workers.executor import WorkerLost
from wordreel.workers.local_worker import LocalWorker

ONE_THREAD = "OPENBLAS_NUM_THREADS"  # which the server sets for itself
RETRY_BUSY_AFTER = 5.0  # seconds until a library that another program writes to is tried again
KILL_AFTER = 5.0  # seconds between SIGTERM and SIGKILL
LOOK_EVERY = 0.2  # seconds between two looks at whether a job is to stop
MAX_LISTED = 100  # paths and failures in a report


class JobProcess:
    """A `JobRunner` that starts a process for each job."""

    def __init__(self, library: Path) -> None:
        self._library = library

    def __call__(
        self, kind: str, request: dict[str, Any], on_progress: ReportProgress, stop: threading.Event
    ) -> dict[str, Any]:
        """Run a job to its end, and again while the library is busy."""
        while not stop.is_set():
            try:
                return self._run_once(kind, request, on_progress, stop)
            except LibraryBusy as error:
                on_progress({"step": "waiting", "reason": page_message(error)})
                stop.wait(RETRY_BUSY_AFTER)
            except WorkerLost:
                if not stop.is_set():
                    raise LibraryError("the process of the job ended early; try again") from None
        raise JobStopped

    def _run_once(
        self, kind: str, request: dict[str, Any], on_progress: ReportProgress, stop: threading.Event
    ) -> dict[str, Any]:
        environment = {name: value for name, value in os.environ.items() if name != ONE_THREAD}
        worker = LocalWorker(environment)
        ended = threading.Event()
        threading.Thread(target=_end_on_stop, args=(worker, stop, ended), daemon=True).start()
        try:
            worker.wait_ready()
            outcome = worker.call(run_politely, (self._library, kind, request), on_progress)
        finally:
            ended.set()
            worker.stop()
        if outcome.error is not None:
            raise outcome.error
        finished: dict[str, Any] = outcome.value
        return finished


def _end_on_stop(worker: LocalWorker, stop: threading.Event, ended: threading.Event) -> None:
    while not ended.is_set():
        if stop.wait(LOOK_EVERY):
            worker.cancel(KILL_AFTER)
            return


def run_politely(path: Path, kind: str, request: dict[str, Any], *, report: ReportProgress) -> dict[str, Any]:
    """Run one job in this process, at a lower priority than searches."""
    os.nice(5)
    return run_job(Library(path, create=False), kind, request, report)


def run_job(
    library: Library, kind: str, request: dict[str, Any], on_progress: ReportProgress
) -> dict[str, Any]:
    """Run one job and return its report. After a kill, the same request resumes it."""
    if kind in ("add", THOROUGH):
        return _add(library, kind, request, _reporter(on_progress, "embedding"))
    if kind == "use":
        agreed = bool(request.get("download"))
        used = library.use(request["model"], _reporter(on_progress), confirm_download=lambda plan: agreed)
        return asdict(used)
    if kind == "embed":
        embedded = library.embed(_reporter(on_progress, "embedding"))
        library.banks.update()
        return {"embedded": embedded}
    if kind == "bank":
        return _bank(library, request, _reporter(on_progress, "embedding"))
    if kind == "check":
        show = _reporter(on_progress, "checking")
        return asdict(library.banks.check(request["bank"], request["captions"], on_progress=show))
    raise WordreelError(f"no job is called {kind!r}")


def _reporter(on_progress: ReportProgress, step: str | None = None) -> ProgressCallback:
    """Return a callback that reports progress as JSON; `step` names what is not about files."""

    def report(now: Progress) -> None:
        if isinstance(now, AddProgress):
            on_progress(files_progress(now))
        else:
            on_progress({"step": step or now.stage, "done": now.done, "total": now.total})

    return report


def _add(
    library: Library, kind: str, request: dict[str, Any], on_progress: ProgressCallback
) -> dict[str, Any]:
    """Run the quick pass; the thorough one is a job of its own, unless there is nothing new to find."""

    def run(*passes: Pass) -> AddReport:
        return library.add(
            *request["paths"],
            retry_failed=bool(request.get("retry_failed")),
            within=request.get("within"),
            passes=passes,
            on_progress=on_progress,
        )

    report = run("thorough") if kind == THOROUGH else run("quick")
    if kind == "add" and not report.waiting:
        report = merge_passes(report, run("thorough"))  # known files whose experts have changed
    if request.get("resumed"):
        library.banks.build_everyday()  # which the first, killed, would have done at its end
    return add_report(report)


def _bank(library: Library, request: dict[str, Any], on_progress: ProgressCallback) -> dict[str, Any]:
    from wordreel.banks.sources import builtin

    name, source = request["name"], request["source"]
    texts, source_text = builtin().texts, builtin().source
    if source != "builtin":
        texts, source_text = tuple(source["texts"]), "queries sent over HTTP"
    if any(row.name == name for row in library.banks.list()) and request.get("resumed"):
        bank = library.banks.show(name)  # killed after the bank was built and before it was embedded
        library.banks.update(name)
    else:
        bank = library.banks.build(name, texts, source_text, on_progress)
    return {"name": bank.name, "size": len(bank)}


def files_progress(now: AddProgress) -> dict[str, Any]:
    """Return the progress over files as JSON."""
    return {
        "step": "files",
        "analysis": now.analysis,
        "done": now.done,
        "total": now.total,
        "fraction": round(now.bytes_done / now.bytes_total, 4) if now.bytes_total else None,
        "files_done": now.done,
        "files_total": now.total,
        "seconds_left": None if now.seconds_left is None else round(now.seconds_left, 1),
        "failures": now.failures,
        "media_seconds": round(now.media_seconds, 1),
        "current": [display_path(PurePath(path).name) for path in now.current],
    }


def add_report(report: AddReport) -> dict[str, Any]:
    """Return what an add did as JSON: mostly numbers."""
    failed = [*report.failed, *report.still_failed]
    listed = ("added", "changed", "updated", "moved", "duplicates")
    return {
        **{name: len(getattr(report, name)) for name in listed},
        "skipped": report.skipped,
        "ignored": report.ignored,
        "failed": [{"path": display_path(path), "reason": reason} for path, reason in failed[:MAX_LISTED]],
        "failures": len(failed),
        "degenerate": [
            {"path": display_path(path), "expert": expert, "reason": what}
            for path, expert, what in report.degenerate[:MAX_LISTED]
        ],
        "seconds": round(report.seconds, 2),
        "media_seconds": round(report.media_seconds, 2),
        "waiting": report.waiting,
    }
