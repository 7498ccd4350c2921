"""Processes that answer searches beside the server, so that Python searches on every core.

How many there are is fixed, or follows the load (`worker_demand`).

Each has a searcher and a model of its own; the embeddings are mapped from the same files, so that memory
holds them once. Everything else stays in the server: connections, access, limits, the cache of answers, jobs.
A search goes to a worker that is idle. Where none is, because it is starting, was killed, opens a changed
library, or failed, the server answers by itself: a worker can only make a search faster.
"""

from __future__ import annotations

import json
import logging
import queue
import select
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from wordreel.serve.search_answer import SearchAnswer

if TYPE_CHECKING:
    from pathlib import Path

    from wordreel.serve.schemas import SearchRequest

log = logging.getLogger("wordreel.serve")

COMMAND = (sys.executable, "-m", "wordreel.serve.search_worker")
START_SECONDS = 120.0
RETRY_AFTER = 5.0  # seconds until a worker that could not be started is tried again

Version = tuple[int, int]


class WorkerGone(Exception):
    """The process has ended, or does not answer."""


class SearchProcess:
    """One worker as the server sees it. Used by one thread at a time."""

    def __init__(self, command: Sequence[str], order: dict[str, Any], timeout: float) -> None:
        # A session of its own: Ctrl-C is the server's alone.
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        try:
            self.ask(order, START_SECONDS)
        except BaseException:
            self.close()
            raise
        self._timeout = timeout

    @property
    def pid(self) -> int:
        return self._process.pid

    def search(self, version: Version, request: SearchRequest) -> SearchAnswer | None:
        """The answer; None where the worker could not find one."""
        fields = request.model_dump(mode="json", exclude_defaults=True)
        head = self.ask({"version": version, "request": fields}, self._timeout)
        if "bytes" not in head:
            return None
        return SearchAnswer(self._read(head["bytes"]), frozenset(head["waiting"]))

    def open(self, version: Version) -> None:
        """Let it open the library again, if that has changed since."""
        self.ask({"version": version}, START_SECONDS)

    def ask(self, order: dict[str, Any], timeout: float) -> dict[str, Any]:
        """Send a line and return the first line of the reply.

        Raises:
            WorkerGone: There is none.
        """
        assert self._process.stdin is not None and self._process.stdout is not None  # noqa: S101, PT018
        try:
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
            self._process.stdin.flush()
            if not select.select([self._process.stdout], [], [], timeout)[0]:
                raise WorkerGone(f"no answer in {timeout:g} seconds")
            head: dict[str, Any] = json.loads(self._process.stdout.readline())
        except (OSError, ValueError) as error:  # it has ended
            raise WorkerGone(f"the process has ended ({error})") from None
        return head

    def _read(self, count: int) -> bytes:
        assert self._process.stdout is not None  # noqa: S101
        body = self._process.stdout.read(count)
        if len(body) < count:
            raise WorkerGone("the process has ended within an answer")
        return body

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()


class SearchWorkers:
    """As many workers as `resize` asks for, replaced when they end."""

    def __init__(self, library: Path, weights: Path, read_only: bool, timeout: float) -> None:
        self._timeout = timeout
        self._order = {"library": str(library), "weights": str(weights), "read_only": read_only}
        self._idle: queue.LifoQueue[SearchProcess] = queue.LifoQueue()  # the latest has the warmest caches
        self._version: Version = (0, 0)
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._every: set[SearchProcess] = set()
        self._wanted = self._places = 0  # workers; those that run or are starting

    def resize(self, count: int) -> None:
        """Run so many from now on. Until new ones are ready, the server answers; of too many, idle ones end
        now and busy ones after their answer."""
        with self._lock:
            if count == self._wanted or self._closed.is_set():
                return
            new = max(0, count - self._places)
            self._wanted, self._places = count, self._places + new
        for _ in range(new):
            self._in_background(self._start_one)
        if not new:
            self._in_background(self._end_idle)

    def answer(self, version: Version, request: SearchRequest) -> SearchAnswer | None:
        """The answer of an idle worker to a search for words; None where the server has to answer."""
        try:
            worker = self._idle.get_nowait()
        except queue.Empty:
            return None
        try:
            found = worker.search(version, request)
        except WorkerGone as error:
            self._replace(worker, error)
            return None
        self._release(worker)
        return found

    def refresh(self, version: Version) -> None:
        """Let idle workers see a changed library now; busy ones see it when they are asked again."""
        self._version = version
        if not self._idle.empty():
            self._in_background(lambda: self._refresh(version))

    @property
    def pids(self) -> set[int]:
        """The processes that are running."""
        with self._lock:
            return {worker.pid for worker in self._every}

    def close(self) -> None:
        self._closed.set()
        with self._lock:
            every, self._every = self._every, set()
        for worker in every:
            worker.close()

    def _refresh(self, version: Version) -> None:
        for worker in self._take_idle():
            try:
                worker.open(version)
            except WorkerGone as error:
                self._replace(worker, error)
            else:
                self._release(worker)

    def _end_idle(self) -> None:
        for worker in self._take_idle():
            self._release(worker)

    def _take_idle(self) -> list[SearchProcess]:
        idle: list[SearchProcess] = []
        with suppress(queue.Empty):
            while True:
                idle.append(self._idle.get_nowait())
        return idle

    def _release(self, worker: SearchProcess) -> None:
        """Let a worker be asked again, or end it where there are too many."""
        if self._give_up_place():
            with self._lock:
                self._every.discard(worker)
            worker.close()
        else:
            self._idle.put(worker)

    def _give_up_place(self) -> bool:
        """Whether there are too many; one less from now on."""
        with self._lock:
            surplus = self._places > self._wanted
            self._places -= surplus
            return surplus

    def _start_one(self) -> None:
        while not self._closed.is_set() and not self._give_up_place():
            try:
                # Or a later version: the library is opened after this.
                order = {**self._order, "version": self._version}
                worker = SearchProcess(COMMAND, order, self._timeout)
            except (WorkerGone, OSError) as error:
                log.warning("a search worker could not be started: %s", error)
                self._closed.wait(RETRY_AFTER)
                continue
            with self._lock:
                self._every.add(worker)
            if self._closed.is_set():
                worker.close()
            else:
                self._release(worker)
            return

    def _replace(self, worker: SearchProcess, error: WorkerGone) -> None:
        worker.close()
        with self._lock:
            self._every.discard(worker)
        if not self._closed.is_set():
            log.warning("a search worker is replaced: %s", error)
            self._in_background(self._start_one)

    def _in_background(self, work: Callable[[], None]) -> None:
        threading.Thread(target=work, name="search-workers", daemon=True).start()
