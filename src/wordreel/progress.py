"""The one progress callback: every long operation reports through it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """How far one stage of a long operation is. `total` is None until it is known.

    Operations with more to say subclass it (`AddProgress`, `TrainProgress`).

    >>> Progress("embedding clips", 3, 12).fraction
    0.25
    """

    stage: str  # what is being done, in the progressive: "embedding clips"
    done: int
    total: int | None = None

    @property
    def fraction(self) -> float | None:
        """Return the share that is done, from 0 to 1; None where the total is not known."""
        return self.done / self.total if self.total else None


ProgressCallback = Callable[[Progress], None]
