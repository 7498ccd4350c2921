"""A worker that is a process of this machine."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from wordreel.media.sandbox import die_with_parent
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
    """A process that is started afresh, not forked: threads and locks of this one do not follow it."""

    def __init__(self, threads: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, threads), daemon=True)
        self._process.start()
        theirs.close()

    def wait_ready(self) -> None:
        if self._receive() != _READY:
            raise RuntimeError("a worker process did not start")

    def call(self, function: Callable[..., Any], args: tuple[Any, ...], on_event: OnEvent | None) -> Outcome:
        try:
            self._connection.send((function, args, on_event is not None))
        except OSError as error:
            raise self._lost() from error
        while not isinstance(message := self._receive(), Outcome):
            if on_event is not None:
                on_event(message)
        return message

    def stop(self) -> None:
        self._process.kill()
        self._process.join()

    def _receive(self) -> Any:
        try:
            return self._connection.recv()
        except (EOFError, OSError) as error:
            raise self._lost() from error

    def _lost(self) -> WorkerLost:
        self._process.join(1.0)
        return WorkerLost(f"process {self._process.pid} ended with status {self._process.exitcode}")


def _serve(connection: Connection, threads: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one
    die_with_parent()
    os.environ["WORDREEL_THREADS"] = str(threads)
    connection.send(_READY)
    while True:
        try:
            function, args, reports = connection.recv()
        except EOFError:
            return
        options = {"report": connection.send} if reports else {}
        connection.send(Outcome.of(function, *args, **options))
