"""A worker that is a process of this machine, and calls functions of modules.

    worker = LocalWorker(environment={...})
    worker.wait_ready()
    outcome = worker.call(function, (1, 2), on_event=print)  # function(1, 2, report=…) there
    worker.cancel(5.0)  # from another thread: the call raises WorkerLost
    worker.stop()

Functions, arguments, events, results and exceptions are pickled. The process ends with the one that started
it.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Mapping
from typing import Any

from wordreel.util.child_process import ChildProcess, ProcessGone, parent_link
from wordreel.workers.executor import Executor, OnEvent, Outcome, WorkerLost

_READY = "ready"


def local_executor(count: int) -> Executor:
    """Return an executor over `count` processes that share the cores of this machine.

    >>> import math
    >>> with local_executor(1) as executor:
    ...     executor.run(math.sqrt, 9.0)
    3.0
    """
    from wordreel.runtime.sessions import shared_by, threads

    with shared_by(count):
        environment = {**os.environ, "WORDREEL_THREADS": str(threads())}
    return Executor(lambda number: LocalWorker(environment), count)


class LocalWorker:
    """A process that runs one call after the other. Threads and locks of this process do not follow it.

    Args:
        environment: All of its environment variables; those of this process by default.
    """

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self._process = ChildProcess("wordreel.workers.local_worker", environment=environment)
        self._process.send(sys.path)

    def wait_ready(self) -> None:
        """Block until the process runs."""
        if self._receive() != _READY:
            raise RuntimeError("a worker process did not start")

    def call(self, function: Callable[..., Any], args: tuple[Any, ...], on_event: OnEvent | None) -> Outcome:
        """Run a function in the process; see `Worker.call`."""
        try:
            self._process.send_bytes(pickle.dumps((function, args, on_event is not None)))
        except ProcessGone as error:
            raise self._lost() from error
        while not isinstance(message := self._receive(), Outcome):
            if on_event is not None:
                on_event(message)
        return message

    def cancel(self, seconds: float) -> None:
        """Ask the process to stop, and end it after so many seconds; a call under way raises WorkerLost."""
        self._process.cancel(seconds)

    def stop(self) -> None:
        """End the process, also in the middle of a call."""
        self._process.close()

    def _receive(self) -> Any:
        try:
            return pickle.loads(self._process.receive_bytes())  # noqa: S301 - from a process of our own
        except ProcessGone as error:
            raise self._lost() from error

    def _lost(self) -> WorkerLost:
        return WorkerLost(f"process {self._process.pid} ended with status {self._process.exit_status(1.0)}")


def main() -> None:
    """Call functions for the parent until it is gone."""
    link = parent_link()
    sys.path[:] = link.receive()

    def send(message: Any) -> None:
        link.send_bytes(pickle.dumps(message))

    send(_READY)
    while True:
        try:
            function, args, reports = pickle.loads(link.receive_bytes())  # noqa: S301 - from our parent
        except ProcessGone:
            return
        send(Outcome.of(function, *args, **({"report": send} if reports else {})))


if __name__ == "__main__":
    main()
