"""Run each job in a process of its own: searching stays fast, and stopping is a kill that loses nothing."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

from wordreel.errors import LibraryError, NextStep
from wordreel.serve.jobs.queue import JobStopped, ReportProgress
from wordreel.serve.problems import page_message
from wordreel.util.child_process import ChildProcess, ProcessGone

KILL_AFTER = 5.0  # seconds between SIGTERM and SIGKILL
ONE_THREAD = "OPENBLAS_NUM_THREADS"  # which the server sets for itself
RETRY_BUSY_AFTER = 5.0  # seconds until a library that another program writes to is tried again


class JobProcess:
    """A `JobRunner` that starts `jobs.worker` for each job."""

    def __init__(self, library: Path) -> None:
        self._library = library

    def __call__(
        self, kind: str, request: dict[str, Any], on_progress: ReportProgress, stop: threading.Event
    ) -> dict[str, Any]:
        while True:
            last = self._run_once(kind, request, on_progress, stop)
            if "report" in last:
                report: dict[str, Any] = last["report"]
                return report
            step = last.get("next_step")
            error = LibraryError(
                last.get("busy") or last.get("error") or "the process of the job ended early; try again",
                NextStep(**step) if step else None,
            )
            if "busy" in last and not stop.is_set():
                on_progress({"step": "waiting", "reason": page_message(error)})
                stop.wait(RETRY_BUSY_AFTER)
            if stop.is_set():
                raise JobStopped
            if "busy" not in last:
                raise error

    def _run_once(
        self, kind: str, request: dict[str, Any], on_progress: ReportProgress, stop: threading.Event
    ) -> dict[str, Any]:
        """Run the worker to its end; returns its last message."""
        environment = {name: value for name, value in os.environ.items() if name != ONE_THREAD}
        worker = ChildProcess("wordreel.serve.jobs.worker", environment=environment)
        ended = threading.Event()
        threading.Thread(target=_cancel_on_stop, args=(worker, stop, ended), daemon=True).start()
        last: dict[str, Any] = {}
        try:
            worker.send({"library": str(self._library), "kind": kind, "request": request})
            while True:
                last = worker.receive()
                if "progress" in last:
                    on_progress(last["progress"])
        except ProcessGone:
            return last
        finally:
            ended.set()
            worker.close()


def _cancel_on_stop(worker: ChildProcess, stop: threading.Event, ended: threading.Event) -> None:
    while not ended.is_set():
        if stop.wait(0.2):
            worker.cancel(KILL_AFTER)
            return
