"""How a search scores: plain similarity, or a query-bank normalisation fitted to the items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from wordreel.errors import NextStep
from wordreel.index.base import Correction
from wordreel.types import Float32, Float64, Int64


class Rescorer(Protocol):
    """A method that cannot be folded into one number per item scores candidates instead."""

    def __call__(self, scores: Float32, rows: Int64) -> Float64:
        """Return new scores `[queries, len(rows)]` of some items from their plain ones."""
        ...


@dataclass(frozen=True, eq=False)
class RivalScores:
    """Hold what competes for a query.

    The plain scores `[m]` of the best items of a sample of videos, and those of the best videos of all.
    """

    scores: Float32
    videos: int  # that the sample stands for
    best: Float32  # [at most `hubness.confidence.CROWD`]


class ConfidenceFunction(Protocol):
    """The confidence of items as answers to one query, in [0, 1]."""

    def __call__(self, scores: Float32, rows: Int64, rivals: RivalScores) -> Float32:
        """Confidences `[n]` of the items `rows [n]` from their plain scores and what competes with them."""
        ...


@dataclass(frozen=True, eq=False)
class FittedNorm:
    """A normalisation fitted to the items: a correction folded into the index or a rescorer, never both."""

    label: str  # as evaluations print it
    correction: Correction | None = None
    rescore: Rescorer | None = None


PLAIN = FittedNorm("none")


@dataclass(frozen=True)
class Note:
    """Why a ranking is plain where that may surprise, and what to do about it."""

    message: str
    next_step: NextStep | None = None

    def __str__(self) -> str:
        return f"{self.message}; {self.next_step.for_command_line()}" if self.next_step else self.message

    def for_page(self) -> str:
        """Return the note in words of the page."""
        return f"{self.message}; {self.next_step.for_page()}" if self.next_step else self.message


@dataclass(frozen=True, eq=False)
class Scoring:
    """The normalisation and the confidence of a search, chosen by its `norm`, `bank` and `beta`."""

    norm: FittedNorm = PLAIN
    confidence: ConfidenceFunction | None = None
    note: Note | None = None
