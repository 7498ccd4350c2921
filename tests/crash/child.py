"""Functions that run in a forked process, which may die of what they do."""

from __future__ import annotations

import gc
import os
import pickle
import traceback
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class InChild(Exception):
    """What went wrong in a forked process."""


def in_child(function: Callable[[], T]) -> T:
    """The result of a function that runs in a process of its own."""
    status, result = fork(function)
    if result is None:
        raise InChild(f"the process ended with status {status}")
    if isinstance(result[0], str):
        raise InChild(result[0])
    value: T = result[0][0]
    return value


def fork(function: Callable[[], object]) -> tuple[int, list[Any] | None]:
    """Run a function in a process of its own: its exit status, and [(result,)] or [error] unless it died."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        gc.disable()  # it does not live long
        code = 1
        try:
            try:
                outcome: object = (function(),)
            except BaseException:
                outcome = traceback.format_exc()
            with os.fdopen(writing, "wb") as out:
                pickle.dump([outcome], out)
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as source:
        data = source.read()
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), pickle.loads(data) if data else None  # noqa: S301 - our own
