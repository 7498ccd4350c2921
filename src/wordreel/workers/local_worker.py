"""A worker that is a process of this machine."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable
from typing import Any

from wordreel.util.child_process import ChildProcess, ProcessGone, parent_link
from wordreel.workers.executor import Executor, OnEvent, Outcome, WorkerLost

_READY = "ready"


def local_executor(count: int) -> Executor:
    """An executor over `count` processes that share the cores of this machine.

    >>> import math
    >>> with local_executor(1) as executor:
    ...     executor.run(math.sqrt, 9.0)
    3.0
    """
    from wordreel.runtime.sessions import shared_by, threads

    with shared_by(count):
        share = threads()
    return Executor(lambda number: LocalWorker(share), count)


class LocalWorker:
    """A process of its own: threads and locks of this one do not follow it."""

    def __init__(self, threads: int) -> None:
        self._process = ChildProcess("wordreel.workers.local_worker", str(threads))
        self._process.send(sys.path)

    def wait_ready(self) -> None:
        if self._receive() != _READY:
            raise RuntimeError("a worker process did not start")

    def call(self, function: Callable[..., Any], args: tuple[Any, ...], on_event: OnEvent | None) -> Outcome:
        try:
            self._process.send_bytes(pickle.dumps((function, args, on_event is not None)))
        except ProcessGone as error:
            raise self._lost() from error
        while not isinstance(message := self._receive(), Outcome):
            if on_event is not None:
                on_event(message)
        return message

    def stop(self) -> None:
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
    os.environ["WORDREEL_THREADS"] = sys.argv[1]

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
