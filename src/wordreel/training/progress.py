"""What a run tells while it runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Progress:
    """`loss` is the mean of this epoch so far, `recall` the last validation's geometric mean (None: none)."""

    epoch: int
    epochs: int
    step: int
    steps: int
    loss: float
    recall: float | None
    rate: float  # steps in a second
    left: float  # seconds


Told = Callable[[Progress], None]


@dataclass
class Clock:
    """Steps in a second over this session, measuring and saving included, and the seconds that are left."""

    steps: int
    begun: float = field(default_factory=time.perf_counter)
    done: int = 0
    spoken: float = 0.0

    def rate(self) -> float:
        passed = time.perf_counter() - self.begun
        return self.done / passed if passed > 0 else 0.0

    def left(self, step: int) -> float:
        rate = self.rate()
        return (self.steps - step) / rate if rate > 0 else float("inf")

    def due(self, every: float = 1.0) -> bool:
        now = time.perf_counter()
        if now - self.spoken < every:
            return False
        self.spoken = now
        return True
