"""How unusual a score is for an item, by the mean and the sixth central moment of its bank similarities.

    t(q, v) = (s(q, v) − μᵥ) / √(rᵥ r̄)      rᵥ = (E (s(b, v) − μᵥ)⁶)^(1/6) over bank queries b, r̄ their median

The sixth moment weighs the rare large similarities that an answer must beat. It is damped by the square root,
because an item with large ones may have earned them: the bank asks for it. t is the same for cosines, logits
and any scale or shift of them.

rᵥ is drawn to r̄ as if by SHRINK more bank queries, which steadies small banks; a column without spread takes
r̄ itself. It is fitted, stored and updated like any method, but nothing ranks by it: `confidence` turns it
into probabilities.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from wordreel.hubness.blocks import SimilarityBlock
from wordreel.hubness.column_moments import ColumnMoments, ColumnMomentsBuilder
from wordreel.hubness.method import Method, Scorer
from wordreel.hubness.state import QUERIES, State
from wordreel.hubness.statistic import StatisticBuilder
from wordreel.types import Array, Float64

SHRINK = 30  # bank queries that the gallery's median spread counts for
SAME = 1e-6  # a column whose spread is less than this part of its mean is constant but for rounding
FURTHEST = 100.0  # |t| beyond this is as sure as can be


@dataclass(frozen=True)
class StandardScore(Method):
    """t(q, v) as a score. Not foldable: it divides."""

    name: ClassVar[str] = "unusual"
    foldable: ClassVar[bool] = False
    gpu: ClassVar[bool] = False

    def builders(self, bank: str) -> dict[str, StatisticBuilder]:
        return {"moments": ColumnMomentsBuilder()}

    def scorer(self, state: State, kind: np.dtype[Any]) -> Scorer:
        centre, scale = levels(state)

        def score(block: SimilarityBlock, out: Array) -> None:
            np.clip((block.values - centre) / scale, -FURTHEST, FURTHEST, out=out)

        return score


def median(values: Float64) -> float:
    """Of at least one value; NumPy's would import masked arrays for it, at the first search of a program.

    >>> median(np.array([3.0, 1.0, 2.0])), median(np.array([4.0, 1.0, 2.0, 3.0]))
    (2.0, 2.5)
    """
    ordered = np.sort(values)
    return float(ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def levels(state: State) -> tuple[Float64, Float64]:
    """μᵥ and √(rᵥ r̄), `[items]` each."""
    moments = state.banks[QUERIES].statistics["moments"]
    assert isinstance(moments, ColumnMoments)  # noqa: S101 - what the builders make
    centre, spread = moments.mean(), moments.spread()
    known = spread > SAME * np.abs(centre)
    if not known.any():
        return centre, np.ones(len(centre))  # the bank cannot tell anything apart: cosines are taken as such
    usual = median(spread[known])
    size = moments.size
    shrunk = np.sqrt((size * (spread / usual) ** 2 + SHRINK) / (size + SHRINK)) * usual
    return centre, np.where(known, np.sqrt(shrunk * usual), usual)
