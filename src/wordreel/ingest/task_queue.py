"""The files that an `add` has yet to process, in the order the user would want."""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable, Iterable, Sequence

from wordreel.ingest.task import AddTask


class TaskQueue:
    """What searches returned comes first, the latest of it, then the newest files. Threads share it.

    `returned` is asked whenever a file is taken, so a search changes what comes next even in a run of hours.
    """

    def __init__(self, tasks: Iterable[AddTask], returned: Callable[[], Sequence[str]]) -> None:
        self._returned = returned
        self._tasks: dict[int, AddTask] = {}
        self._by_content: dict[str, list[int]] = {}
        self._newest: list[tuple[int, int]] = []
        self._ready = threading.Condition()
        self._number = 0
        self._closed = False
        for task in tasks:
            self.put(task)

    def put(self, task: AddTask) -> None:
        with self._ready:
            self._number += 1
            self._tasks[self._number] = task
            if task.last_content is not None:
                self._by_content.setdefault(task.last_content, []).append(self._number)
            heapq.heappush(self._newest, (-task.stamp.mtime_ns, self._number))
            self._ready.notify()

    def get(self) -> AddTask | None:
        """The next task; waits for one. None once the queue is closed."""
        with self._ready:
            while not self._tasks and not self._closed:
                self._ready.wait()
            return None if self._closed else self._tasks.pop(self._next())

    def close(self) -> None:
        """Let everyone who waits, or comes, go without a task."""
        with self._ready:
            self._closed = True
            self._ready.notify_all()

    def _next(self) -> int:
        if self._by_content:
            for content in self._returned():
                for number in self._by_content.pop(content, ()):
                    if number in self._tasks:
                        return number
        while True:
            _, number = heapq.heappop(self._newest)
            if number in self._tasks:
                return number
