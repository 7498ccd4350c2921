"""Nearest neighbour normalisation (NNN).

Chowdhury et al., "Nearest neighbor normalization improves multimodal retrieval", EMNLP 2024, arXiv
2410.24114.

    η(q, v) = s(q, v) − α · mean of the k largest bank similarities of v

CSLS without the term that is constant per query, and with a weight. k = 128 and α = 0.75 are what the authors
recommend; the mean is over the whole bank where that is smaller than k.

Fit O(bank · gallery) partitions, state O(gallery · k), apply one subtraction per score. Equal
scores stay equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from wordreel.hubness.bank_statistics import Spec, TopK
from wordreel.hubness.method import Method, check_count, check_number
from wordreel.hubness.state import State
from wordreel.types import Float64


@dataclass(frozen=True)
class NNN(Method):
    """s(q, v) − α r(v)."""

    name: ClassVar[str] = "nnn"
    k: int = 128
    alpha: float = 0.75

    def __post_init__(self) -> None:
        check_count("k", self.k, 1)
        check_number("alpha", self.alpha, 0, 1e3)

    def statistics(self, bank: str) -> Sequence[Spec]:
        return [Spec(TopK, self.k)]

    def offset(self, state: State) -> Float64:
        return self.alpha * state.statistic(TopK).mean()
