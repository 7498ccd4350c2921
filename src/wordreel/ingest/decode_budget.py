"""How many files are decoded at once: as many as there are jobs, and fewer of huge frames."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from wordreel.util.cores import cores

PIXELS_PER_CORE = 10_000_000
"""Pixels of a frame, summed over the files decoded at once: two cores decode two files of 4K, or one of 8K,
for which a decoder holds 500 MB."""
_PATIENCE = 0.5  # seconds between two looks at whether to stop


Release = Callable[[], None]
"""Ends a hold before its block does."""


class DecodeBudget:
    """Lets files in, in order, while their frames together have at most `pixels`; a larger one goes in alone.

    Args:
        pixels: The bound on the sum; ten million for each core if None.
        files: How many at once, whatever their size; as many as there are if None.

    >>> budget = DecodeBudget()
    >>> with budget.hold(7680 * 4320, lambda: None) as release:
    ...     before = budget.held
    ...     release()
    ...     before, budget.held
    (33177600, 0)
    """

    def __init__(self, pixels: int | None = None, files: int | None = None) -> None:
        self.held = 0
        self._files_held = 0
        self._pixels = PIXELS_PER_CORE * cores() if pixels is None else pixels
        self._files = math.inf if files is None else files
        self._turn = threading.Lock()
        self._changed = threading.Condition()

    @contextmanager
    def hold(self, pixels: int, check_stop: Callable[[], None]) -> Iterator[Release]:
        """Wait until there is room for a file, and hold it; `check_stop` may raise while waiting."""
        while not self._turn.acquire(timeout=_PATIENCE):  # whoever waits for room has it: first come
            check_stop()
        try:
            with self._changed:
                while (self.held and self.held + pixels > self._pixels) or self._files_held >= self._files:
                    self._changed.wait(_PATIENCE)
                    check_stop()
                self.held += pixels
                self._files_held += 1
        finally:
            self._turn.release()
        released = False

        def release() -> None:
            nonlocal released
            with self._changed:
                if not released:
                    released = True
                    self.held -= pixels
                    self._files_held -= 1
                    self._changed.notify_all()

        try:
            yield release
        finally:
            release()
