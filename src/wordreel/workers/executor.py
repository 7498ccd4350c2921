"""Run functions on workers that may die: processes of this machine, or of a Ray cluster."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, TypeVar

from wordreel.errors import NextStep, WordreelError

T = TypeVar("T")
ATTEMPTS = 3  # calls whose worker died, after which the call itself is at fault
STARTS = 3  # workers in a row that did not start, after which none will

OnEvent = Callable[[Any], None]


class WorkerLost(Exception):
    """The worker died during a call; `node_lost` if its whole machine did."""

    def __init__(self, message: str, node_lost: bool = False) -> None:
        super().__init__(message)
        self.node_lost = node_lost


class CallFailed(WordreelError):
    """Every worker that was given this call died of it."""


@dataclass(frozen=True)
class Outcome:
    """What a function returned, or raised."""

    value: Any = None
    error: BaseException | None = None

    @classmethod
    def of(cls, function: Callable[..., Any], *args: Any, **options: Any) -> Outcome:
        """Call a function, and return its result or its error."""
        try:
            return cls(function(*args, **options))
        except Exception as error:
            return cls(error=error)


class Worker(Protocol):
    """One process that runs one call at a time."""

    def wait_ready(self) -> None:
        """Block until calls can be made; raises where they never will."""
        ...

    def call(self, function: Callable[..., Any], args: tuple[Any, ...], on_event: OnEvent | None) -> Outcome:
        """Run a function in the worker; raises WorkerLost.

        With `on_event` the function gets `report=`, and what it reports arrives there.
        """
        ...

    def stop(self) -> None:
        """End the worker, also in the middle of a call."""
        ...


class Executor:
    """A fixed number of workers that take calls from any thread. A worker that dies is replaced.

    Calls wait until a worker is free, which bounds what is under way. Functions and arguments are pickled:
    functions by name, so that workers run the code that is installed where they are.

    Args:
        start: Starts the worker with a number.
        count: How many workers to keep.
        on_close: Called after the workers were stopped.
    """

    def __init__(
        self, start: Callable[[int], Worker], count: int, on_close: Callable[[], None] = lambda: None
    ) -> None:
        self.count = count
        self._start, self._on_close = start, on_close
        self._idle: queue.SimpleQueue[tuple[int, Worker] | BaseException] = queue.SimpleQueue()
        self._workers: dict[int, Worker] = {}
        self._lock = threading.Lock()
        self._busy: dict[int, Worker] = {}
        self._failed_starts = 0
        self._closed = False
        for number in range(count):
            self._begin(number)

    def run(
        self, function: Callable[..., T], *args: Any, on_event: OnEvent | None = None, retry: bool = True
    ) -> T:
        """Run a function on the next free worker, and again on another if that one dies.

        Args:
            function: A function of a module.
            args: Its arguments.
            on_event: Called with what the function reports; the function then takes `report=`.
            retry: Whether to run it again if its worker dies.

        Raises:
            CallFailed: The worker died every time, and not with its machine; once, without `retry`.
            Exception: What the function raised.
        """
        losses = 0
        while True:
            number, worker = self._take()
            self._busy[number] = worker
            try:
                outcome = worker.call(function, args, on_event)
            except WorkerLost as lost:
                self._begin(number)
                losses += not lost.node_lost
                if losses >= ATTEMPTS or not retry:
                    times = f"{losses} times" if retry else "in the middle"
                    raise CallFailed(f"the process that ran it died {times} ({lost})") from lost
                continue
            except BaseException:  # `on_event` raised: the worker is busy with a call that nobody wants
                worker.stop()
                self._begin(number)
                raise
            finally:
                self._busy.pop(number, None)
            self._idle.put((number, worker))
            if outcome.error is not None:
                raise outcome.error
            value: T = outcome.value
            return value

    def map(self, function: Callable[..., T], items: Iterable[tuple[Any, ...]]) -> Iterator[T]:
        """Yield the results of a function over tuples of arguments, in order; few are computed ahead."""
        pending: deque[Future[T]] = deque()
        threads = ThreadPoolExecutor(self.count)
        try:
            for item in items:
                pending.append(threads.submit(self.run, function, *item))
                if len(pending) > 2 * self.count:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            threads.shutdown(wait=False, cancel_futures=True)

    def stop_calls(self) -> None:
        """End the workers of all calls under way, as if they had died."""
        for worker in list(self._busy.values()):
            worker.stop()

    def close(self) -> None:
        """Stop all workers; calls that are waiting or under way raise."""
        with self._lock:
            self._closed = True
            workers = list(self._workers.values())
        self._idle.put(RuntimeError("this executor is closed"))
        for worker in workers:
            worker.stop()
        self._on_close()

    def __enter__(self) -> Executor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _take(self) -> tuple[int, Worker]:
        ready = self._idle.get()
        if isinstance(ready, BaseException):
            self._idle.put(ready)  # for everyone else who waits
            raise ready
        return ready

    def _begin(self, number: int) -> None:
        """Start a worker in the background: while a cluster has no room for it, the others work on."""
        threading.Thread(target=self._start_worker, args=(number,), daemon=True).start()

    def _start_worker(self, number: int) -> None:
        while True:
            try:
                with self._lock:
                    if self._closed:
                        return
                    worker = self._workers[number] = self._start(number)
                worker.wait_ready()
            except BaseException as error:
                with self._lock:
                    self._failed_starts += 1
                    if self._closed:
                        return
                    if self._failed_starts < STARTS and not isinstance(error, WordreelError):
                        continue
                self._idle.put(error if isinstance(error, WordreelError) else _cannot_start(error))
                return
            self._failed_starts = 0
            self._idle.put((number, worker))
            return


def _cannot_start(error: BaseException) -> WordreelError:
    reason = str(error).strip().splitlines() or [type(error).__name__]
    step = NextStep("install the same version of wordreel, with the same extras, on every node")
    return WordreelError(f"no worker starts: {reason[-1]}", step)


LOCAL, RAY = "local", "ray"


def open_executor(on: str, count: int | None = None, *, own_gpus: bool = False) -> Executor:
    """Return the executor that a word or an address names.

    Args:
        on: `local` for processes of this machine, `ray` for the Ray cluster of this machine or of
            `$RAY_ADDRESS`, or the address of a Ray cluster.
        count: How many workers; one for each core if None.
        own_gpus: Give each worker a GPU of its own, where there are GPUs, instead of sharing them.

    Raises:
        WordreelError: Ray is not installed, or the cluster cannot be reached.
    """
    if on == LOCAL:
        from wordreel.util.machine import cores
        from wordreel.workers.local_worker import local_executor

        return local_executor(count or cores())
    from wordreel.workers.ray_worker import PER_GPU, ray_executor

    return ray_executor(None if on == RAY else on, count, 1 if own_gpus else PER_GPU)
