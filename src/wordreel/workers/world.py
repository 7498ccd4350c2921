"""Run a function as one world of processes, as torchrun does, on the workers of an executor.

`wordreel.lab.training.distributed` finds its world in the environment, whoever set it there.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from io import StringIO, TextIOBase
from pathlib import Path
from typing import Any

from wordreel.errors import NextStep, TrainingError, WordreelError
from wordreel.workers.executor import CallFailed, Executor

GRACE = 10.0  # seconds
RESTARTS = 3  # worlds that lost a worker, after which the run is given up


@dataclass(frozen=True)
class WorldEvent:
    """What the main process tells: where the others find it, and the last line it printed."""

    host: str
    port: int
    line: str = ""


@dataclass(frozen=True)
class _Call:
    function: Callable[..., None]
    args: tuple[Any, ...]
    folder: str  # relative paths mean the same everywhere


def run_world(
    executor: Executor,
    function: Callable[..., None],
    args: tuple[Any, ...],
    resume_args: tuple[Any, ...],
    on_line: Callable[[str], None],
) -> str:
    """Call a function in every worker at once, as one world; what it printed in the main process.

    A world that loses a worker is started again, with `resume_args`.

    Args:
        executor: All its workers take part.
        function: A function of a module.
        args: Its arguments, the same in all processes.
        resume_args: Its arguments after a worker was lost.
        on_line: Called with lines that the main process prints to standard error.

    Raises:
        TrainingError: Worlds lost a worker again and again.
        Exception: What the function raised in one of the processes.
    """
    for restart in range(RESTARTS + 1):
        lost, result = _one_world(executor, function, resume_args if restart else args, on_line)
        if not lost:
            return result
        on_line("a worker was lost; starting again from the last saved state")
    step = NextStep("run the same command with --resume")
    raise TrainingError(f"the run lost a worker {RESTARTS + 1} times", step)


def _one_world(
    executor: Executor, function: Callable[..., None], args: tuple[Any, ...], on_line: Callable[[str], None]
) -> tuple[bool, str]:
    """Whether the world lost a worker, and what its main process printed."""
    size = executor.count
    call = _Call(function, args, str(Path.cwd()))
    found: Future[WorldEvent] = Future()
    lock = threading.Lock()
    last = ""

    def on_event(event: WorldEvent) -> None:
        nonlocal last
        with lock:
            if not found.done():
                found.set_result(event)
        if event.line and event.line != last:
            last = event.line
            on_line(event.line)

    def main_process() -> str:
        return executor.run(_main_process, call, size, on_event=on_event, retry=False)

    def other(rank: int) -> None:
        where = found.result()
        executor.run(_other_process, call, rank, size, where.host, where.port, retry=False)

    with ThreadPoolExecutor(size) as threads:
        ranks: list[Future[Any]] = [threads.submit(main_process)]
        ranks += [threads.submit(other, rank) for rank in range(1, size)]
        try:
            first = _errors(wait(ranks, return_when=FIRST_EXCEPTION).done)
            if first and not any(isinstance(error, WordreelError) for error in first):
                wait(ranks, timeout=GRACE)  # others may feel a death before it is known
            errors = _errors(rank for rank in ranks if rank.done())
        finally:  # what is left would wait for the others for ever
            executor.stop_calls()
            with lock:
                if not found.done():
                    found.set_exception(CallFailed("the main process was lost"))
    if any(isinstance(error, CallFailed) for error in errors):
        return True, ""
    for error in sorted(errors, key=lambda error: not isinstance(error, WordreelError)):
        raise error
    return False, str(ranks[0].result())


def _errors(ranks: Iterable[Future[Any]]) -> list[BaseException]:
    return [error for rank in ranks if (error := rank.exception()) is not None]


def _main_process(call: _Call, size: int, report: Callable[[WorldEvent], None]) -> str:
    """Run the process with rank 0; what it printed to standard output."""
    host = _own_address()
    with socket.socket() as free:
        free.bind((host, 0))
        port = int(free.getsockname()[1])
    where = WorldEvent(host, port)
    report(where)
    printed = StringIO()
    lines = _Lines(lambda line: report(replace(where, line=line)))
    with redirect_stdout(printed), redirect_stderr(lines):
        _member(call, 0, size, host, port)
    return printed.getvalue()


def _other_process(call: _Call, rank: int, size: int, host: str, port: int) -> None:
    """Run a process with another rank; the main one prints the same."""
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        _member(call, rank, size, host, port)


def _member(call: _Call, rank: int, size: int, host: str, port: int) -> None:
    """Run the process with this rank."""
    import torch

    gpus = max(1, torch.cuda.device_count())  # those that this process sees: on Ray, its own
    os.environ |= {
        "WORLD_SIZE": str(size),
        "RANK": str(rank),
        "LOCAL_RANK": str(rank % gpus),
        "MASTER_ADDR": host,
        "MASTER_PORT": str(port),
    }
    os.chdir(call.folder)
    call.function(*call.args)


def _own_address() -> str:
    """Return the address by which other machines reach this one; loopback where there are no others."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # an address for documentation: nothing is sent
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"


class _Lines(TextIOBase):
    """A stream that passes on each line that is complete."""

    def __init__(self, on_line: Callable[[str], None]) -> None:
        self._on_line, self._started = on_line, ""

    def write(self, text: str) -> int:
        *lines, self._started = (self._started + text).splitlines(keepends=True) or [""]
        if self._started.endswith("\n"):
            lines, self._started = [*lines, self._started], ""
        for line in lines:
            if line.strip():
                self._on_line(line.rstrip())
        return len(text)
