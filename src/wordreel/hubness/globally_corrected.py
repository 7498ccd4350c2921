"""Globally corrected retrieval (GC): Dinu et al., "Improving zero-shot learning by mitigating the hubness
problem", ICLR workshop 2015, arXiv 1412.6568.

    η(q, v) = −(rankᵥ(q) − s(q, v)),    rankᵥ(q) = 1 + |{j : s(bⱼ, v) > s(q, v)}|

The rank of the query among the bank, from the item's side, comes first and the similarity breaks ties.
With the formula as printed a similarity outside (−½, ½) could outweigh a whole rank, so by default the ties
are broken by the position of s(q, v) within the row, scaled into [0, 1): the intended order for any scale.
`printed=True` gives the printed sum. Bank values equal to s(q, v) do not count against it; items with the
same rank and the same similarity stay equal.

Fit O(bank log bank) per item; the state is the sorted bank, **O(gallery · bank) memory**. Apply O(log bank)
per score and a sort per row; scores are float64. It is not foldable into one number per item. `levels` keeps
only that many order statistics per item; ranks are then estimates and `state.exact` is False.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

import numpy as np

from wordreel.hubness.blocks import Similarities, SimilarityBlock
from wordreel.hubness.method import Method, Scorer, check_count
from wordreel.hubness.sorted_columns import SortedColumns, SortedColumnsBuilder, compress
from wordreel.hubness.state import QUERIES, BankState, State
from wordreel.hubness.statistic import StatisticBuilder
from wordreel.types import Array, Float64


@dataclass(frozen=True)
class GloballyCorrected(Method):
    """Minus the rank from the item's side, similarity second."""

    name: ClassVar[str] = "gc"
    foldable: ClassVar[bool] = False
    double: ClassVar[bool] = True
    single_pass: ClassVar[bool] = False  # columns are compressed once the whole bank is sorted
    gpu: ClassVar[bool] = False
    levels: int | None = None
    printed: bool = False

    def __post_init__(self) -> None:
        if self.levels is not None:
            check_count("levels", self.levels, 1)

    def builders(self, bank: str) -> dict[str, StatisticBuilder]:
        return {"columns": SortedColumnsBuilder()}

    def _fit_on_cpu(self, given: Mapping[str, Similarities], threads: int | None) -> State:
        state = super()._fit_on_cpu(given, threads)
        bank = state.banks[QUERIES]
        columns = replace(cast(SortedColumns, bank.statistics["columns"]), levels=self.levels)
        return replace(state, banks={QUERIES: BankState(bank.size, {"columns": compress(columns)})})

    def columns(self, state: State) -> Array:
        """`[items, bank]` (or `[items, levels]`): the bank similarities of each item, ascending."""
        return cast(SortedColumns, state.banks[QUERIES].statistics["columns"]).sorted

    def scorer(self, state: State, kind: np.dtype[Any]) -> Scorer:
        columns = cast(SortedColumns, state.banks[QUERIES].statistics["columns"])

        def score(block: SimilarityBlock, out: Array) -> None:
            second = block.values if self.printed else row_positions(block.values)
            np.subtract(second, 1 + columns.greater(block.values), out=out)

        return score


def row_positions(values: Array) -> Float64:
    """How many different smaller values each value has in its row, as a share of the row: in [0, 1)."""
    order = np.argsort(values, axis=1, kind="stable")
    ranked = np.take_along_axis(values, order, axis=1)
    steps = np.zeros(values.shape)
    steps[:, 1:] = np.cumsum(ranked[:, 1:] > ranked[:, :-1], axis=1)
    out = np.empty(values.shape)
    np.put_along_axis(out, order, steps / values.shape[1], axis=1)
    return out
