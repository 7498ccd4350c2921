"""Centring (CENT): Suzuki et al., "Centering similarity measures to reduce hubs", EMNLP 2013.

    η(q, v) = s(q, v) − meanⱼ s(bⱼ, v)

What moving the origin to the centroid of the bank does to an inner product, up to terms that are the same
for every item of a query. It is inverted softmax as β → 0. In QB-Norm's comparison it hurts (arXiv
2112.12777, supplement, section 7).

Fit O(bank · gallery), state O(gallery), apply one subtraction per score. Equal scores stay equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from wordreel.hubness.bank_statistics import ColumnMean, Spec
from wordreel.hubness.method import Method
from wordreel.hubness.state import State
from wordreel.types import Float64


@dataclass(frozen=True)
class Centring(Method):
    """s(q, v) − mean."""

    name: ClassVar[str] = "cent"

    def statistics(self, bank: str) -> Sequence[Spec]:
        return [Spec(ColumnMean)]

    def offset(self, state: State) -> Float64:
        return state.statistic(ColumnMean).mean()
