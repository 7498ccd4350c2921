"""Globally corrected retrieval (GC).

Dinu et al., "Improving zero-shot learning by mitigating the hubness problem", ICLR workshop 2015, arXiv
1412.6568.

    η(q, v) = −(rankᵥ(q) − s(q, v)),    rankᵥ(q) = 1 + |{j : s(bⱼ, v) > s(q, v)}|

The rank of the query among the bank, from the item's side, comes first and the similarity breaks ties.
With the formula as printed a similarity outside (−½, ½) could outweigh a whole rank, so by default the ties
are broken by the position of s(q, v) within the row, scaled into [0, 1): the intended order for any scale.
`printed=True` gives the printed sum. Bank values equal to s(q, v) do not count against it; items with the
same rank and the same similarity stay equal.

Fit O(bank log bank) per item; the state is the sorted bank, **O(gallery · bank) memory**. Apply O(log bank)
per score and a sort per row; scores are float64. It is not foldable into one number per item.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from wordreel.hubness.bank_statistics import ItemStatistic, Spec
from wordreel.hubness.blocks import SimilarityBlock
from wordreel.hubness.method import Method, Scorer
from wordreel.hubness.state import State
from wordreel.types import Array, Float64


@dataclass(frozen=True)
class SortedColumns(ItemStatistic):
    """Every bank similarity of every item, `sorted [items, size]`, ascending."""

    key: ClassVar[str] = "columns"
    fold_rows: ClassVar[float] = math.inf
    sorted: Array

    @classmethod
    def of(cls, block: SimilarityBlock, parameter: None) -> Self:
        return cls(None, len(block), block.values.T.copy())

    def merge(self, *others: SortedColumns) -> SortedColumns:
        rows = np.concatenate([one.sorted for one in (self, *others)], axis=1)
        return SortedColumns(None, rows.shape[1], np.sort(rows, axis=1))

    def greater(self, rows: Array) -> Float64:
        """Return how many bank similarities of each item exceed `rows [queries, items]`, by bisection."""
        columns = self.sorted if rows.dtype == self.sorted.dtype else self._wide
        rows, width = rows.astype(columns.dtype, copy=False), columns.shape[1]
        below = np.empty(rows.shape, np.int64)
        for item, column in enumerate(columns):
            below[:, item] = np.searchsorted(column, rows[:, item], side="right")
        return np.asarray(width - below, np.float64)

    @cached_property
    def _wide(self) -> Float64:
        return self.sorted.astype(np.float64)


@dataclass(frozen=True)
class GloballyCorrected(Method):
    """Minus the rank from the item's side, similarity second."""

    name: ClassVar[str] = "gc"
    foldable: ClassVar[bool] = False
    double: ClassVar[bool] = True
    gpu: ClassVar[bool] = False
    printed: bool = False

    def statistics(self, bank: str) -> Sequence[Spec]:
        return [Spec(SortedColumns)]

    def scorer(self, state: State, kind: np.dtype[Any]) -> Scorer:
        columns = state.statistic(SortedColumns)

        def score(block: SimilarityBlock, out: Array) -> None:
            second = block.values if self.printed else row_positions(block.values)
            np.subtract(second, 1 + columns.greater(block.values), out=out)

        return score


def row_positions(values: Array) -> Float64:
    """Return how many different smaller values each value has in its row, as a share of the row."""
    order = np.argsort(values, axis=1, kind="stable")
    ranked = np.take_along_axis(values, order, axis=1)
    steps = np.zeros(values.shape)
    steps[:, 1:] = np.cumsum(ranked[:, 1:] > ranked[:, :-1], axis=1)
    out = np.empty(values.shape)
    np.put_along_axis(out, order, steps / values.shape[1], axis=1)
    return out
