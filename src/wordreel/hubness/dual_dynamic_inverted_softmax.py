"""Dual-bank dynamic inverted softmax (DualDIS): Wang et al., "Balance act", EMNLP 2023, arXiv 2310.11612.

Each bank has its own activation set. A bank's inverted softmax factor is applied to a query's row if the
query's plain best item is in that bank's set:

    both      s(q, v) − (β₁ b¹ᵥ + β₂ b²ᵥ)/(β₁ + β₂)          one bank      s(q, v) − bᵥ of that bank
    neither   s(q, v), bit for bit

The paper multiplies two dynamic inverted softmaxes, so that a closed gate contributes a factor s(q, v); two
closed gates would then rank by s², which puts −0.9 above 0.5. Here a closed gate contributes nothing.

Fit O((query bank + gallery bank) · gallery), state O(gallery + banks · k); ties for the best item go to the
lowest number. It has up to three different offsets, so it is not foldable as one; `offsets` gives them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np

from wordreel.hubness.activation_set import ActivationSet, ActivationSetBuilder
from wordreel.hubness.blocks import SimilarityBlock
from wordreel.hubness.log_sum_exp import LogSumExp, LogSumExpBuilder
from wordreel.hubness.method import Method, Scorer, check_beta, check_count
from wordreel.hubness.state import GALLERY, QUERIES, State
from wordreel.hubness.statistic import StatisticBuilder
from wordreel.types import Array, Bool, Float64


@dataclass(frozen=True)
class DualDynamicInvertedSoftmax(Method):
    """Inverted softmax by each bank whose gate the query opens."""

    name: ClassVar[str] = "dual-dis"
    foldable: ClassVar[bool] = False
    gated: ClassVar[bool] = True
    banks: ClassVar[tuple[str, ...]] = (QUERIES, GALLERY)
    beta: float = 20.0
    gallery_beta: float = 3.0
    k: int = 1

    def __post_init__(self) -> None:
        check_beta(self.beta)
        check_beta(self.gallery_beta, "gallery_beta")
        check_count("k", self.k, 1)

    def inverse_temperature(self, bank: str) -> float:
        return self.beta if bank == QUERIES else self.gallery_beta

    def builders(self, bank: str) -> dict[str, StatisticBuilder]:
        beta = self.inverse_temperature(bank)
        return {"logsum": LogSumExpBuilder(beta), "winners": ActivationSetBuilder(self.k)}

    def offsets(self, state: State) -> Float64:
        """`[4, items]` for the gates (closed, queries only, gallery only, both)."""
        first, second = (cast(LogSumExp, state.banks[b].statistics["logsum"]).soft_mean() for b in self.banks)
        both = (self.beta * first + self.gallery_beta * second) / (self.beta + self.gallery_beta)
        return np.stack([np.zeros(state.items), first, second, both])

    def gates(self, state: State) -> Bool:
        """`[2, items]`: the activation set of the query bank and that of the gallery bank."""
        counts = [cast(ActivationSet, state.banks[b].statistics["winners"]).counts for b in self.banks]
        return np.stack(counts) > 0

    def activation(self, state: State) -> Bool:
        """Items that open either gate."""
        return np.asarray(self.gates(state).any(axis=0))

    def scorer(self, state: State, kind: np.dtype[Any]) -> Scorer:
        offsets = self.offsets(state).astype(kind)
        which = np.array([1, 2]) @ self.gates(state)

        def score(block: SimilarityBlock, out: Array) -> Bool:
            opened = which[block.tops]
            np.subtract(block.values, offsets[opened], out=out)
            return np.asarray(opened > 0)

        return score
