"""Dynamic inverted softmax (DIS).

Bogolin, Croitoru et al., "Cross modal retrieval with querybank normalisation" (QB-Norm), CVPR 2022, arXiv
2112.12777.

    η(q, v) = inverted softmax   if argmaxᵥ s(q, v) ∈ A
              s(q, v)            otherwise,        A = ∪ⱼ top-kᵥ s(bⱼ, v)

Only queries whose plain best item was retrieved by the bank are corrected, so a bank from another domain
does little harm. A query's whole row is corrected or left as it is, bit for bit.

Fit is one pass, O(bank · gallery), state O(gallery + bank · k): bᵥ of the inverted softmax and the k winners
of each bank query. Apply is one maximum per row and one subtraction per score. Ties for the best item go
to the lowest number, in the bank and in the queries.

The released code exponentiates without a shift, finds A by sorting whole rows and overwrites its input;
none of that changes a ranking where it does not overflow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from wordreel.hubness.bank_statistics import ActivationSet, LogSumExp, Spec
from wordreel.hubness.blocks import SimilarityBlock
from wordreel.hubness.method import Method, Scorer, check_beta, check_count
from wordreel.hubness.state import State
from wordreel.types import Array, Bool, Float64


@dataclass(frozen=True)
class DynamicInvertedSoftmax(Method):
    """s(q, v) − bᵥ where the gate is open, s(q, v) elsewhere.

    >>> bank = np.array([[0.9, 0.1], [0.8, 0.2]], np.float32)
    >>> method = DynamicInvertedSoftmax()
    >>> scores = method.apply(np.array([[0.5, 0.4], [0.1, 0.4]], np.float32), method.fit(bank))
    >>> scores.activated.tolist(), scores.ranking_scores.argmax(axis=1).tolist()
    ([True, False], [1, 1])
    """

    name: ClassVar[str] = "dis"
    gated: ClassVar[bool] = True
    beta: float = 20.0
    k: int = 1

    def __post_init__(self) -> None:
        check_beta(self.beta)
        check_count("k", self.k, 1)

    def statistics(self, bank: str) -> Sequence[Spec]:
        return [Spec(LogSumExp, self.beta), Spec(ActivationSet, self.k)]

    def offset(self, state: State) -> Float64:
        return state.statistic(LogSumExp).soft_mean()

    def activation(self, state: State) -> Bool:
        return np.asarray(state.statistic(ActivationSet).counts > 0)

    def scorer(self, state: State, kind: np.dtype[Any]) -> Scorer:
        offset, gate = state.offset.astype(kind), state.activation

        def score(block: SimilarityBlock, out: Array) -> Bool:
            opened = np.asarray(gate[block.tops])
            np.subtract(block.values, offset, out=out)
            if not opened.all():
                out[~opened] = block.values[~opened]
            return opened

        return score
