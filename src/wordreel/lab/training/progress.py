"""Progress of a training run: epoch, step, loss, recall, speed and the time left."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from wordreel.progress import Progress


@dataclass(frozen=True)
class TrainProgress(Progress):
    """`done` and `total` count steps.

    `loss` is the mean of the current epoch so far; `recall` is the geometric mean of R@1, R@5 and R@10 (text
    to video) in the last validation, None before the first.
    """

    epoch: int = 0
    epochs: int = 0
    loss: float = 0.0
    recall: float | None = None
    steps_per_second: float = 0.0
    seconds_left: float = float("inf")

    @property
    def epoch_ended(self) -> bool:
        return self.total is not None and self.done * self.epochs == self.epoch * self.total


TrainCallback = Callable[[TrainProgress], None]


@dataclass
class StepTimer:
    """Speed of this session, validation and saving included, and the time left."""

    total_steps: int
    started: float = field(default_factory=time.perf_counter)
    steps: int = 0
    last_report: float = 0.0

    def steps_per_second(self) -> float:
        seconds = time.perf_counter() - self.started
        return self.steps / seconds if seconds > 0 else 0.0

    def seconds_left(self, step: int) -> float:
        speed = self.steps_per_second()
        return (self.total_steps - step) / speed if speed > 0 else float("inf")

    def report_due(self, every: float = 1.0) -> bool:
        """True at most once every `every` seconds."""
        now = time.perf_counter()
        if now - self.last_report < every:
            return False
        self.last_report = now
        return True
