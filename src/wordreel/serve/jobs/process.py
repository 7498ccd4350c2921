"""Run each job in a process of its own: searching stays fast, and stopping is a kill that loses nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from wordreel.errors import LibraryError, NextStep
from wordreel.serve.jobs.queue import JobStopped, ReportProgress
from wordreel.serve.problems import page_message

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
        worker = subprocess.Popen(
            [sys.executable, "-m", "wordreel.serve.jobs.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={name: value for name, value in os.environ.items() if name != ONE_THREAD},
        )
        ended = threading.Event()
        threading.Thread(target=_kill_on_stop, args=(worker, stop, ended), daemon=True).start()
        last: dict[str, Any] = {}
        try:
            assert worker.stdin is not None and worker.stdout is not None  # noqa: S101, PT018
            order = {"library": str(self._library), "kind": kind, "request": request}
            with suppress(BrokenPipeError):
                worker.stdin.write(json.dumps(order).encode() + b"\n")
                worker.stdin.flush()  # stays open for as long as the server lives
            for line in worker.stdout:
                with suppress(ValueError):  # half a line of a killed worker
                    last = json.loads(line)
                if "progress" in last:
                    on_progress(last["progress"])
            worker.wait()
        finally:
            ended.set()
            worker.kill()
            worker.wait()
            for pipe in (worker.stdin, worker.stdout):
                if pipe is not None:
                    with suppress(OSError):
                        pipe.close()
        return last


def _kill_on_stop(worker: subprocess.Popen[bytes], stop: threading.Event, ended: threading.Event) -> None:
    while not ended.is_set():
        if stop.wait(0.2):
            worker.terminate()
            if not ended.wait(KILL_AFTER):
                worker.kill()
            return
