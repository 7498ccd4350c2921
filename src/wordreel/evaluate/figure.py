"""A figure of ranks by its short name, as a function of averages over queries where it is one.

R@K, R-sum, the geometric mean and the mean rank are functions of a few averages: `parts` says what a query
adds, `value` turns the averages into the figure. The median is not one of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from wordreel.errors import EvaluationError
from wordreel.evaluate.ranks import found_by
from wordreel.types import Float64


@dataclass(frozen=True)
class Figure:
    """`parts [queries, n]` of ranks and `value [...]` of averages `[..., n]`; no parts means the median."""

    name: str
    parts: Callable[[Float64], Float64] | None
    value: Callable[[Float64], Float64]
    bounded: bool = True  # an answer that was not found has a place in it

    @property
    def more_is_better(self) -> bool:
        return self.bounded

    def of(self, ranks: Float64) -> Float64:
        """The figure over these ranks."""
        if self.parts is None:
            return np.asarray(np.median(ranks))
        return self.value(self.parts(ranks).sum(axis=0) / len(ranks))


def figure_of(name: str) -> Figure:
    """R1, R5, … of any K; Rsum, Geom (both of 1, 5 and 10); MdR, MnR.

    >>> float(figure_of("R5").of(np.array([1.0, 4.0, 20.0, 30.0])))
    50.0
    """
    if name == "MdR":
        return Figure(name, None, _only, bounded=False)
    if name == "MnR":
        return Figure(name, lambda ranks: ranks[:, None], _only, bounded=False)
    if name == "Rsum":
        return Figure(name, _hits(1, 5, 10), lambda shares: 100 * shares.sum(axis=-1))
    if name == "Geom":
        return Figure(name, _hits(1, 5, 10), lambda shares: 100 * np.cbrt(shares.prod(axis=-1)))
    if re.fullmatch(r"R[1-9][0-9]{0,8}", name):
        return Figure(name, _hits(int(name[1:])), lambda shares: 100 * shares[..., 0])
    raise EvaluationError(
        f"there is no figure {name!r}; known are R1, R5, … of any K, Rsum, Geom, MdR and MnR"
    )


def _hits(*ks: int) -> Callable[[Float64], Float64]:
    return lambda ranks: np.stack([found_by(ranks, k).astype(np.float64) for k in ks], axis=1)


def _only(averages: Float64) -> Float64:
    return np.asarray(averages[..., 0])
