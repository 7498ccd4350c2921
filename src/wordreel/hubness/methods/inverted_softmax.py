"""Inverted softmax (IS): Smith et al., "Offline bilingual word vectors", ICLR 2017, arXiv 1702.03859.

    η(q, v) = exp(β s(q, v)) / Σⱼ exp(β s(bⱼ, v))

An item that is near to many bank queries has a large denominator, so hubs sink. Scores here are
log(m·η)/β = s(q, v) − bᵥ, with bᵥ the log-mean-exp of the item's bank similarities: the same order, in the
units of the similarities, and finite for any input.

Fit O(bank · gallery), state O(gallery), apply one subtraction per score. Equal scores stay equal. β = 20 is
meant for cosines (QB-Norm, arXiv 2112.12777); on logits of scale c use β/c.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from wordreel.hubness.bank_statistics import LogSumExp, Spec
from wordreel.hubness.method import Method, check_beta
from wordreel.hubness.state import State
from wordreel.types import Float64


@dataclass(frozen=True)
class InvertedSoftmax(Method):
    """s(q, v) − bᵥ.

    >>> import numpy as np
    >>> bank = np.array([[0.9, 0.1], [0.8, 0.2]], np.float32)  # item 0 is near to every query
    >>> method = InvertedSoftmax()
    >>> method.apply(np.array([[0.5, 0.4]], np.float32), method.fit(bank)).argmax(axis=1)
    array([1])
    """

    name: ClassVar[str] = "is"
    beta: float = 20.0

    def __post_init__(self) -> None:
        check_beta(self.beta)

    def statistics(self, bank: str) -> Sequence[Spec]:
        return [Spec(LogSumExp, self.beta)]

    def offset(self, state: State) -> Float64:
        return state.statistic(LogSumExp).soft_mean()


@dataclass(frozen=True)
class TransductiveInvertedSoftmax(InvertedSoftmax):
    """Apply inverted softmax over the test queries. **Transductive**: it needs all of them.

    The "basic inverted softmax during inference" that TS2-Net (Liu et al. 2022), CAMoE and CLIP2TV report.

        η(q, v) = exp(β s(q, v)) / Σ over all test queries q' of exp(β s(q', v))

    The same formula, with the test queries as the bank. Released code multiplies the softmax by s(q, v) once
    more, which is `dual_softmax`. β = 1 on logits of scale 100, so 100 on cosines. For video to text the test
    queries are the videos: fit on that direction's query rows.

    A figure by this method cannot be had by a search, which has one query at a time: its one number per item
    is refused to indexes (`State.bias`).
    """

    name: ClassVar[str] = "test-is"
    transductive: ClassVar[bool] = True
    beta: float = 100.0
