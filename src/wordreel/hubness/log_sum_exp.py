"""Per-item log-mean-exp of bank similarities, as a stream.

    bᵥ = (1/β) log( (1/m) Σⱼ exp(β s(bⱼ, v)) )

Kept as a shift and a float64 sum, bᵥ = shiftᵥ + (log totalᵥ − log m)/β with totalᵥ = Σⱼ exp(β(s − shiftᵥ)),
so nothing overflows. The mean instead of the sum moves every bᵥ by log(m)/β, which changes no ranking and
keeps bᵥ between the mean (β → 0) and the maximum (β → ∞) of the column. Exponentials are taken in float32
for float32 input with β ≥ 0.1 (an error of about 1e-7/β in bᵥ) and in float64 otherwise; sums are float64,
of float32 sums of few rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from wordreel.hubness.blocks import SimilarityBlock
from wordreel.hubness.exponential import exponential
from wordreel.hubness.statistic import ItemStatistic
from wordreel.types import Array, Float64

SAFE_EXPONENT = 30.0  # exp(±30) and sums of such terms are far from the limits of float32
SMALL_BETA = 0.1
FEW_ROWS = 32  # whose float32 sum loses nothing that shows


@dataclass(frozen=True)
class LogSumExp(ItemStatistic):
    """`shift` and `total`, each `[items]`."""

    beta: float
    size: int
    shift: Float64
    total: Float64

    def soft_mean(self) -> Float64:
        """bᵥ, `[items]`."""
        return np.asarray(self.shift + (np.log(self.total) - np.log(self.size)) / self.beta)

    def merge(self, other: LogSumExp) -> LogSumExp:
        shift = np.maximum(self.shift, other.shift)
        mine = np.exp(self.beta * (self.shift - shift))
        yours = np.exp(self.beta * (other.shift - shift))
        total = self.total * mine + other.total * yours
        return LogSumExp(self.beta, self.size + other.size, shift, total)


class LogSumExpBuilder:
    """Blocks whose exponents are small are summed without a shift; others with the maximum of each column."""

    def __init__(self, beta: float) -> None:
        self._beta = beta
        self._size = 0
        self._plain: Float64 | None = None  # Σ exp(β s), no shift
        self._shifted: LogSumExp | None = None
        self._scratch: Array = np.empty((0, 0), np.float32)

    @property
    def key(self) -> tuple[object, ...]:
        return ("logsum", self._beta)

    def update(self, block: SimilarityBlock) -> None:
        self._size += len(block)
        if self._beta * block.max_abs <= SAFE_EXPONENT:
            total = self._sum_exp(block.values, None)
            self._plain = total if self._plain is None else self._plain + total
            return
        shift = block.values.max(axis=0)
        total = self._sum_exp(block.values, shift)
        one = LogSumExp(self._beta, len(block), shift.astype(np.float64), total)
        self._shifted = one if self._shifted is None else self._shifted.merge(one)

    def build(self) -> LogSumExp:
        sums = [] if self._shifted is None else [self._shifted]
        if self._plain is not None:
            zeros = np.zeros(len(self._plain))
            sums.append(LogSumExp(self._beta, 0, zeros, self._plain))
        one = sums[0] if len(sums) == 1 else sums[0].merge(sums[1])
        return replace(one, size=self._size)

    def _sum_exp(self, values: Array, shift: Array | None) -> Float64:
        """Σ over rows of exp(β(s − shift)), in one reused scratch block."""
        kind = np.float64 if self._beta < SMALL_BETA else values.dtype
        if self._scratch.shape != values.shape or self._scratch.dtype != kind:
            self._scratch = np.empty(values.shape, kind)
        out = self._scratch
        if shift is not None:
            values = np.subtract(values, shift, out=out)
        exponential(values, self._beta, out)
        return _sum_rows(out)


def _sum_rows(values: Array) -> Float64:
    whole = len(values) // FEW_ROWS * FEW_ROWS
    groups = values[:whole].reshape(-1, FEW_ROWS, values.shape[1]).sum(axis=1)
    total = groups.sum(axis=0, dtype=np.float64)
    return np.asarray(total + values[whole:].sum(axis=0) if whole < len(values) else total)
