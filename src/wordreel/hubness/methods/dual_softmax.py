"""Dual softmax at test time (DSL).

Cheng et al., "Improving video-text retrieval by multi-stream corpus alignment and dual softmax loss"
(CAMoE), arXiv 2109.04290. **Transductive**: it needs all the test queries.

    η(q, v) = s(q, v) · exp(β s(q, v)) / Σ over all test queries q' of exp(β s(q', v))

Fit it on the test queries themselves and report its figures as such. The published form has β = 1 on logits
of scale 100, so β = 100 on cosines. For video to text the softmax runs over the videos: fit on that
direction's query rows. Transposing the text-to-video result instead, as released code does, changes nothing
where similarities are positive. TS2-Net's tables call this form "inverted softmax"; without the factor
s(q, v) it is `transductive_inverted_softmax`.

The product underflows for logits, so scores are an increasing function of η, sign(s)·h(log|η|) with
h(l) = 1/(1 − l) for l < 0 and 1 + l otherwise, in float64: the order of η, finite, and 0 exactly for s = 0.

Fit O(queries · gallery), state O(gallery). Not foldable (s enters twice). Equal scores stay equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from wordreel.hubness.bank_statistics import LogSumExp, Spec
from wordreel.hubness.blocks import SimilarityBlock
from wordreel.hubness.method import Method, Scorer, check_beta
from wordreel.hubness.state import State
from wordreel.types import Array


@dataclass(frozen=True)
class DualSoftmax(Method):
    """s ⊙ softmax over the test queries."""

    name: ClassVar[str] = "dsl"
    foldable: ClassVar[bool] = False
    double: ClassVar[bool] = True
    transductive: ClassVar[bool] = True
    beta: float = 100.0

    def __post_init__(self) -> None:
        check_beta(self.beta)

    def statistics(self, bank: str) -> Sequence[Spec]:
        return [Spec(LogSumExp, self.beta)]

    def scorer(self, state: State, kind: np.dtype[Any]) -> Scorer:
        soft = state.statistic(LogSumExp).soft_mean()
        queries = np.log(state.bank_size)

        def score(block: SimilarityBlock, out: Array) -> None:
            s = block.values.astype(np.float64)
            size = np.log(np.abs(s), where=s != 0, out=np.zeros_like(s))
            size += self.beta * (s - soft) - queries
            size = np.where(size < 0, 1 / (1 - np.minimum(size, 0)), 1 + size)
            np.multiply(np.sign(s), size, out=out)

        return score
