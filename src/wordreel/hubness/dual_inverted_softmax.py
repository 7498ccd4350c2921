"""Dual-bank inverted softmax (DualIS): Wang et al., "Balance act: mitigating hubness in cross-modal
retrieval with query and gallery banks", EMNLP 2023, arXiv 2310.11612.

    η(q, v) = exp(β₁ s(q, v)) / Σⱼ exp(β₁ s(bⱼ, v)) · exp(β₂ s(q, v)) / Σᵢ exp(β₂ s(gᵢ, v))

bⱼ is a bank of queries, gᵢ a bank of gallery items (training videos, say) compared with the gallery. In log
space, divided by β₁ + β₂, that is s(q, v) − (β₁ b¹ᵥ + β₂ b²ᵥ)/(β₁ + β₂): a weighted mean of two inverted
softmax corrections. The released code applies it to the wrong matrix; this is the paper's formula.

Fit O((query bank + gallery bank) · gallery), state O(gallery). Equal scores stay equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, cast

from wordreel.hubness.log_sum_exp import LogSumExp, LogSumExpBuilder
from wordreel.hubness.method import Method, check_beta
from wordreel.hubness.state import GALLERY, QUERIES, State
from wordreel.hubness.statistic import StatisticBuilder
from wordreel.types import Float64


@dataclass(frozen=True)
class DualInvertedSoftmax(Method):
    """s(q, v) less the weighted mean of both banks' bᵥ."""

    name: ClassVar[str] = "dual-is"
    banks: ClassVar[tuple[str, ...]] = (QUERIES, GALLERY)
    beta: float = 20.0
    gallery_beta: float = 3.0

    def __post_init__(self) -> None:
        check_beta(self.beta)
        check_beta(self.gallery_beta, "gallery_beta")

    def inverse_temperature(self, bank: str) -> float:
        return self.beta if bank == QUERIES else self.gallery_beta

    def builders(self, bank: str) -> dict[str, StatisticBuilder]:
        return {"logsum": LogSumExpBuilder(self.inverse_temperature(bank))}

    def offset(self, state: State) -> Float64:
        first, second = (cast(LogSumExp, state.banks[b].statistics["logsum"]).soft_mean() for b in self.banks)
        return (self.beta * first + self.gallery_beta * second) / (self.beta + self.gallery_beta)
