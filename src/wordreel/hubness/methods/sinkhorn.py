"""Sinkhorn normalisation, with one bank or two.

Pan et al., "Hubness reduction with dual bank Sinkhorn normalization for cross-modal retrieval", ACM
Multimedia 2025.

The bank's similarities are scaled to a plan with uniform marginals; an item's potential says how much it has
to be held back. With inverse temperature β = 1/τ, starting from g = 0, `rounds` times:

    fⱼ = −(1/β) log meanᵥ exp(β(s(bⱼ, v) + gᵥ))        every bank query spreads one unit
    gᵥ = −(1/β) log meanⱼ exp(β(s(bⱼ, v) + fⱼ))        every item receives one unit
    η(q, v) = s(q, v) + gᵥ

Without the f step this is inverted softmax. Two banks: the columns are the gallery and a bank of other
gallery items, [bank, items + extra], so that a small or odd gallery is balanced in the company of typical
items; only the gallery's potentials are stored.

Fit: `rounds` passes over the bank, O(rounds · bank · gallery), in float64; so the bank must be an array or a
source that can be read again. State O(gallery + bank). Every number depends on all queries and items, so a
state cannot change. Equal scores stay equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from wordreel.errors import HubnessError
from wordreel.hubness.bank_statistics import ItemStatistic, LogSumExp, Spec, check_arrays
from wordreel.hubness.blocks import (
    Similarities,
    SimilarityBlock,
    SimilaritySource,
    as_source,
    blocks_of,
    check,
    each_span,
)
from wordreel.hubness.device import pick_gpu
from wordreel.hubness.fit import warn_if_logits
from wordreel.hubness.method import Method, check_beta, check_count
from wordreel.hubness.state import GALLERY, QUERIES, BankState, State
from wordreel.types import Array, Float64


@dataclass(frozen=True)
class Potentials(ItemStatistic):
    """`g [items]` and `f [bank]`; the parameter is β."""

    key: ClassVar[str] = "potentials"
    g: Float64
    f: Float64

    @classmethod
    def of(cls, block: SimilarityBlock, parameter: float) -> Self:
        raise HubnessError("Sinkhorn potentials are not gathered in one pass; call fit")

    @classmethod
    def load(cls, parameter: float, size: int, items: int, arrays: dict[str, Array]) -> Self:
        check_arrays(arrays, {"g": items, "f": size})
        return cls(parameter, size, **arrays)

    def merge(self, *others: Potentials) -> Potentials:
        raise HubnessError("Sinkhorn potentials cannot be merged; fit the whole bank from the start")


@dataclass(frozen=True)
class Sinkhorn(Method):
    """s(q, v) + gᵥ."""

    name: ClassVar[str] = "sinkhorn"
    streaming: ClassVar[bool] = False
    gpu: ClassVar[bool] = False
    beta: float = 100.0
    rounds: int = 5

    def __post_init__(self) -> None:
        check_beta(self.beta)
        check_count("rounds", self.rounds, 1)

    def statistics(self, bank: str) -> Sequence[Spec]:
        return [Spec(Potentials, self.beta)] if bank == QUERIES else []

    def offset(self, state: State) -> Float64:
        return -state.statistic(Potentials).g

    def fit(
        self,
        blocks: Similarities,
        gallery: Similarities | None = None,
        *,
        threads: int | None = None,
        device: str = "cpu",
    ) -> State:
        self.check_banks(gallery)
        pick_gpu(device, [blocks], [self])
        bank = readable(blocks)
        size, items = bank.shape
        wide = bank if gallery is None else Beside(bank, readable(gallery))
        g, f = np.zeros(wide.shape[1]), np.zeros(size)
        max_abs = 0.0
        for _ in range(self.rounds):
            halves = each_span(wide.shape, lambda a, b, g=g: self._half_rounds(wide, a, b, g, f), threads)  # type: ignore[misc]
            sums = [half for half, _high in halves]
            g, max_abs = -sums[0].merge(*sums[1:]).soft_mean(), max(high for _, high in halves)
        warn_if_logits(max_abs, self.beta)
        potentials = Potentials(self.beta, size, g[:items], f)
        return State(self, items, {QUERIES: BankState(size, {Potentials.key: potentials})})

    def _half_rounds(
        self, source: SimilaritySource, start: int, stop: int, g: Float64, f: Float64
    ) -> tuple[LogSumExp, float]:
        """Set f of some rows from g and return their share of every new g, in one reading."""
        sums: list[LogSumExp] = []
        max_abs = 0.0
        for at, block in blocks_of(source, start, stop):
            max_abs = max(max_abs, block.max_abs)
            raised = block.values + g
            top = raised.max(axis=1)
            own = np.exp(self.beta * (raised - top[:, None])).mean(axis=1)
            f[at : at + len(block)] = -(top + np.log(own) / self.beta)
            sums.append(LogSumExp.of(check(block.values + f[at : at + len(block), None]), self.beta))
        return sums[0].merge(*sums[1:]), max_abs


@dataclass(frozen=True)
class DualSinkhorn(Sinkhorn):
    """Apply Sinkhorn over the gallery and a bank of other items.

    `fit` takes `blocks [bank, items]` and `gallery [bank, extra items]`, both with the same queries as rows.
    """

    name: ClassVar[str] = "dual-sinkhorn"
    banks: ClassVar[tuple[str, ...]] = (QUERIES, GALLERY)


@dataclass(frozen=True)
class Beside:
    """Two sources side by side."""

    left: SimilaritySource
    right: SimilaritySource

    def __post_init__(self) -> None:
        if self.left.shape[0] != self.right.shape[0]:
            raise HubnessError(
                f"both matrices have the bank's queries as rows, but one has {self.left.shape[0]}, the other "
                f"{self.right.shape[0]}"
            )

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.left.shape[0], self.left.shape[1] + self.right.shape[1])

    def read(self, start: int, stop: int) -> Array:
        return np.concatenate([self.left.read(start, stop), self.right.read(start, stop)], axis=1)


def readable(blocks: Similarities) -> SimilaritySource:
    """Return a source that can be read again and has rows."""
    source = as_source(blocks)
    if source is None:
        raise HubnessError("Sinkhorn reads the bank several times; pass an array or a source, not a stream")
    if len(source.shape) != 2 or 0 in source.shape:
        raise HubnessError(f"the bank must be a matrix with queries and items, not {source.shape}")
    return source
