"""Cross-domain similarity local scaling (CSLS).

Conneau et al., "Word translation without parallel data", ICLR 2018, arXiv 1710.04087.

    η(q, v) = 2 s(q, v) − r(q) − r(v)

r(v) is the mean similarity of v to its K nearest bank queries, r(q) that of q to its K nearest gallery
items (all of them where there are fewer than K). r(q) is the same for every item, so it never changes a
ranking; it makes scores of different queries comparable.

Fit O(bank · gallery) partitions, state O(gallery · K), apply O(gallery) per query. Ties: which of
several equal neighbours counts does not matter to a mean. Scores are float32 (float64 for float64 rows).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from wordreel.hubness.bank_statistics import Spec, TopK
from wordreel.hubness.blocks import SimilarityBlock
from wordreel.hubness.method import Method, Scorer, check_count
from wordreel.hubness.state import State
from wordreel.types import Array, Float64


@dataclass(frozen=True)
class CSLS(Method):
    """2 s(q, v) − r(q) − r(v), which ranks as s(q, v) − r(v)/2."""

    name: ClassVar[str] = "csls"
    k: int = 10

    def __post_init__(self) -> None:
        check_count("k", self.k, 1)

    def statistics(self, bank: str) -> Sequence[Spec]:
        return [Spec(TopK, self.k)]

    def offset(self, state: State) -> Float64:
        return state.statistic(TopK).mean() / 2

    def scorer(self, state: State, kind: np.dtype[Any]) -> Scorer:
        offset = (2 * state.offset).astype(kind)
        rest = state.items - min(self.k, state.items)

        def score(block: SimilarityBlock, out: Array) -> None:
            near = np.partition(block.values, rest, axis=1)[:, rest:]
            own = near.mean(axis=1, dtype=np.float64).astype(kind)
            np.subtract(block.values, own[:, None], out=out)
            out += block.values - offset

        return score
