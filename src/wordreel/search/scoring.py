"""How a search scores: plain similarity, or a query-bank normalisation fitted to the items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from wordreel.index.base import Correction
from wordreel.types import Float32, Float64, Int64


class Rescorer(Protocol):
    """A method that cannot be folded into one number per item scores candidates instead."""

    def __call__(self, scores: Float32, rows: Int64) -> Float64:
        """New scores `[queries, len(rows)]` of some items from their plain ones."""
        ...


class ConfidenceFunction(Protocol):
    """How sure one can be of each item as an answer to one query, in [0, 1]."""

    def __call__(self, scores: Float32, best: Int64) -> Float32:
        """Confidences `[items]` from the plain scores of all items and the best item of every video."""
        ...


@dataclass(frozen=True, eq=False)
class FittedNorm:
    """One way to rank: the correction folded into the index, or a rescorer of candidates; never both."""

    label: str  # as evaluations print it
    correction: Correction | None = None
    rescore: Rescorer | None = None


PLAIN = FittedNorm("none")
