"""Jobs in a process of their own: searching stays fast, and stopping is a kill that loses nothing."""

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
from wordreel.serve.jobs.runner import Stopped, Tell
from wordreel.serve.problems import page_message

PATIENCE = 5.0  # seconds between asking and insisting
ONE_THREAD = "OPENBLAS_NUM_THREADS"  # which the server sets for itself
BUSY = 5.0  # seconds until a library that another program writes to is tried again


class InProcess:
    """The work of `jobs.tasks`, done by `jobs.child`."""

    def __init__(self, library: Path) -> None:
        self._library = library

    def __call__(
        self, kind: str, request: dict[str, Any], tell: Tell, stop: threading.Event
    ) -> dict[str, Any]:
        while True:
            last = self._once(kind, request, tell, stop)
            if "report" in last:
                report: dict[str, Any] = last["report"]
                return report
            step = last.get("next_step")
            error = LibraryError(
                last.get("busy") or last.get("error") or "the process of the job ended early; try again",
                NextStep(**step) if step else None,
            )
            if "busy" in last and not stop.is_set():
                tell({"step": "waiting", "reason": page_message(error)})
                stop.wait(BUSY)
            if stop.is_set():
                raise Stopped
            if "busy" not in last:
                raise error

    def _once(self, kind: str, request: dict[str, Any], tell: Tell, stop: threading.Event) -> dict[str, Any]:
        """The last thing that the child said."""
        child = subprocess.Popen(
            [sys.executable, "-m", "wordreel.serve.jobs.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={name: value for name, value in os.environ.items() if name != ONE_THREAD},
        )
        over = threading.Event()
        threading.Thread(target=_stop_when, args=(child, stop, over), daemon=True).start()
        last: dict[str, Any] = {}
        try:
            assert child.stdin is not None and child.stdout is not None  # noqa: S101, PT018
            order = {"library": str(self._library), "kind": kind, "request": request}
            with suppress(BrokenPipeError):
                child.stdin.write(json.dumps(order).encode() + b"\n")
                child.stdin.flush()  # and stays open for as long as the server is there
            for line in child.stdout:
                with suppress(ValueError):  # half a line of a killed child
                    last = json.loads(line)
                if "progress" in last:
                    tell(last["progress"])
            child.wait()
        finally:
            over.set()
            child.kill()
            child.wait()
            for pipe in (child.stdin, child.stdout):
                if pipe is not None:
                    with suppress(OSError):
                        pipe.close()
        return last


def _stop_when(child: subprocess.Popen[bytes], stop: threading.Event, over: threading.Event) -> None:
    while not over.is_set():
        if stop.wait(0.2):
            child.terminate()
            if not over.wait(PATIENCE):
                child.kill()
            return
