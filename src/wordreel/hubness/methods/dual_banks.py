"""Dual-bank inverted softmax (DualIS).

Wang et al., "Balance act: mitigating hubness in cross-modal retrieval with query and gallery banks", EMNLP
2023, arXiv 2310.11612.

    η(q, v) = exp(β₁ s(q, v)) / Σⱼ exp(β₁ s(bⱼ, v)) · exp(β₂ s(q, v)) / Σᵢ exp(β₂ s(gᵢ, v))

bⱼ is a bank of queries, gᵢ a bank of gallery items (training videos, say) compared with the gallery. In log
space, divided by β₁ + β₂, that is s(q, v) − (β₁ b¹ᵥ + β₂ b²ᵥ)/(β₁ + β₂): a weighted mean of two inverted
softmax corrections. The released code applies it to the wrong matrix; this is the paper's formula.

Fit O((query bank + gallery bank) · gallery), state O(gallery). Equal scores stay equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from wordreel.hubness.bank_statistics import ActivationSet, LogSumExp, Spec
from wordreel.hubness.blocks import SimilarityBlock
from wordreel.hubness.method import Method, Scorer, check_beta, check_count
from wordreel.hubness.state import GALLERY, QUERIES, State
from wordreel.types import Array, Bool, Float64


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

    def statistics(self, bank: str) -> Sequence[Spec]:
        return [Spec(LogSumExp, self.beta if bank == QUERIES else self.gallery_beta)]

    def offset(self, state: State) -> Float64:
        first, second = (state.statistic(LogSumExp, bank).soft_mean() for bank in self.banks)
        return (self.beta * first + self.gallery_beta * second) / (self.beta + self.gallery_beta)


@dataclass(frozen=True)
class DualDynamicInvertedSoftmax(DualInvertedSoftmax):
    """Dual-bank dynamic inverted softmax (DualDIS): inverted softmax by each bank whose gate the query opens.

    Each bank has its own activation set. A bank's inverted softmax factor is applied to a query's row if the
    query's plain best item is in that bank's set:

        both      s(q, v) − (β₁ b¹ᵥ + β₂ b²ᵥ)/(β₁ + β₂)          one bank      s(q, v) − bᵥ of that bank
        neither   s(q, v), bit for bit

    The paper multiplies two dynamic inverted softmaxes, so that a closed gate contributes a factor s(q, v);
    two closed gates would then rank by s², which puts −0.9 above 0.5. Here a closed gate contributes nothing.

    State O(gallery + banks · k); ties for the best item go to the lowest number. It has up to three different
    offsets, so it is not foldable as one.
    """

    name: ClassVar[str] = "dual-dis"
    foldable: ClassVar[bool] = False
    gated: ClassVar[bool] = True
    k: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("k", self.k, 1)

    def statistics(self, bank: str) -> Sequence[Spec]:
        return [*super().statistics(bank), Spec(ActivationSet, self.k)]

    def gates(self, state: State) -> Bool:
        """Return the activation sets of the query bank and of the gallery bank, `[2, items]`."""
        return np.stack([state.statistic(ActivationSet, bank).counts for bank in self.banks]) > 0

    def activation(self, state: State) -> Bool:
        return np.asarray(self.gates(state).any(axis=0))

    def scorer(self, state: State, kind: np.dtype[Any]) -> Scorer:
        first, second = (state.statistic(LogSumExp, bank).soft_mean() for bank in self.banks)
        offsets = np.stack([np.zeros(state.items), first, second, self.offset(state)]).astype(kind)
        which = np.array([1, 2]) @ self.gates(state)

        def score(block: SimilarityBlock, out: Array) -> Bool:
            opened = which[block.tops]
            np.subtract(block.values, offsets[opened], out=out)
            return np.asarray(opened > 0)

        return score
