"""What every index takes and returns.

A query bank gives an index one number per item and, for the gated methods, one bit.

A corrected score is s(q, v) − bias[v]: the inner product of `[v, −bias]` and `[q, 1]`. A gated correction
holds for the queries whose plain best item is `active`; the others stay plain.
"""

from __future__ import annotations

from dataclasses import dataclass

from wordreel.types import Bool, Float32, Int64


@dataclass(frozen=True, eq=False)
class Correction:
    """`bias [n]` and, for gated methods, `active [n]`, in the order of the index's items."""

    bias: Float32
    active: Bool | None = None

    def fits(self, items: int) -> bool:
        return self.bias.shape == (items,) and (self.active is None or self.active.shape == (items,))


@dataclass(frozen=True)
class IndexResult:
    """The best items of each query, best first. Rows past the end of a short gallery are -1, scores -inf."""

    rows: Int64  # [queries, k]
    scores: Float32  # [queries, k]
    corrected: Bool  # [queries]
