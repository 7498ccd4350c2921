"""Threads for work that would block the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from wordreel.serve.problems import Problem

P = ParamSpec("P")
T = TypeVar("T")

MAX_WAITING = 256  # requests for one executor; more are refused


class BoundedExecutor:
    """A thread pool with a bound on how many calls may wait for it, and for how long."""

    def __init__(self, name: str, threads: int, timeout: float) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._timeout, self._calls = timeout, 0

    async def __call__(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `work` in a thread; a `Problem` where too many wait or it takes too long."""
        if self._calls >= MAX_WAITING:
            raise Problem(
                503, "too_busy", "too many requests at once; try again", headers={"retry-after": "1"}
            )
        self._calls += 1
        try:
            async with asyncio.timeout(self._timeout):
                return await asyncio.get_running_loop().run_in_executor(
                    self._threads, lambda: work(*args, **kwargs)
                )
        except TimeoutError:
            raise Problem(
                503,
                "too_slow",
                "this took too long; ask for less, or try again",
                headers={"retry-after": "5"},
            ) from None
        finally:
            self._calls -= 1

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
