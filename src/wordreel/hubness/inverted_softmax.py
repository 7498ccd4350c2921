"""Inverted softmax (IS): Smith et al., "Offline bilingual word vectors", ICLR 2017, arXiv 1702.03859.

    η(q, v) = exp(β s(q, v)) / Σⱼ exp(β s(bⱼ, v))

An item that is near to many bank queries has a large denominator, so hubs sink. Scores here are
log(m·η)/β = s(q, v) − bᵥ, with bᵥ the log-mean-exp of the item's bank similarities: the same order, in the
units of the similarities, and finite for any input.

Fit O(bank · gallery), state O(gallery), apply one subtraction per score. Equal scores stay equal. β = 20 is
meant for cosines (QB-Norm, arXiv 2112.12777); on logits of scale c use β/c.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, cast

from wordreel.hubness.log_sum_exp import LogSumExp, LogSumExpBuilder
from wordreel.hubness.method import Method, check_beta
from wordreel.hubness.state import QUERIES, State
from wordreel.hubness.statistic import StatisticBuilder
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

    def inverse_temperature(self, bank: str) -> float:
        return self.beta

    def builders(self, bank: str) -> dict[str, StatisticBuilder]:
        return {"logsum": LogSumExpBuilder(self.beta)}

    def offset(self, state: State) -> Float64:
        return cast(LogSumExp, state.banks[QUERIES].statistics["logsum"]).soft_mean()
