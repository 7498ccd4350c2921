"""How many search workers a server needs, by how many searches are on their way at once.

    load(t) = ∫ searches(u) e^((u − t) / SECONDS) du / SECONDS, over the past

One person who types has a load below 1. A burst of `SEVERAL` searches at once that lasts a second or two asks
for a worker for each, up to a limit, until the load has been below `FEW` for `QUIET` seconds. So a laptop
with one user never holds the memory of workers, and many clients get all cores.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable

from wordreel.util.cores import cores

SECONDS = 2.0
SEVERAL, FEW = 2.5, 1.5  # searches at once
QUIET = 60.0  # seconds
WORKER_BYTES = 200 * 2**20  # about what one holds
MEMORY_SHARE = 4  # all of them together hold at most this part of the memory


def most_workers() -> int:
    """One for each core, as far as memory allows."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(1, min(cores(), memory // MEMORY_SHARE // WORKER_BYTES))


class WorkerDemand:
    """The number of workers to run now, from 0 to `most`. Belongs to one thread.

    >>> now = iter(range(0, 1000, 10))
    >>> demand = WorkerDemand(4, lambda: float(next(now)))
    >>> [demand.wanted(searches) for searches in (1, 1, 16, 16, 0, 0)]
    [0, 0, 0, 4, 4, 4]
    """

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._clock = most, clock
        self._at = self._busy_at = clock()
        self._load, self._searches, self._wanted = 0.0, 0, 0

    def wanted(self, searches: int) -> int:
        """The number of workers, when so many searches are on their way from now on."""
        now = self._clock()
        self._load = self._searches + (self._load - self._searches) * math.exp((self._at - now) / SECONDS)
        self._at, self._searches = now, searches
        if self._load >= FEW:
            self._busy_at = now
        if self._load >= SEVERAL:
            self._wanted = max(self._wanted, min(self._most, math.ceil(self._load)))
        elif now - self._busy_at >= QUIET:
            self._wanted = 0
        return self._wanted
