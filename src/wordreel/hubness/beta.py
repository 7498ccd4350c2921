"""Which β to use: by validation pairs where there are some, by the spread of the bank where there are none.

With pairs, `choose_beta` takes the β of a grid with the highest R@1, and of those the lowest mean rank.

Without, `choose_beta_unlabelled` takes

    β = SPREADS / σ      σ the median over items of the standard deviation of an item's bank similarities

so that the softmax over the bank is equally sharp on every scale: cosines of any model, or logits. SPREADS
was chosen by leaving one collection out at a time (`studies/beta.py`): each time the others chose the same
value. With a bank of another domain, IS and DIS can still lose to plain ranking; CSLS, which has no β, did
not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wordreel.errors import HubnessError
from wordreel.hubness.blocks import matrix
from wordreel.hubness.dynamic_inverted_softmax import DynamicInvertedSoftmax
from wordreel.hubness.method import Method
from wordreel.hubness.ranks import corrected_ranks
from wordreel.hubness.standard_score import SAME
from wordreel.types import Array, Int64

SPREADS = 1.5  # β in units of 1/σ
PUBLISHED = 20.0  # of QB-Norm, for banks that have no spread
GRID = (1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 30.0, 50.0, 75.0, 100.0)  # for cosines


@dataclass(frozen=True)
class BetaTrial:
    """One β and what it gave."""

    beta: float
    r1: float
    mean_rank: float


@dataclass(frozen=True)
class BetaChoice:
    """The chosen β and everything that was tried, in the order of the grid."""

    beta: float
    tried: tuple[BetaTrial, ...]


def choose_beta(
    bank: Array,
    queries: Array,
    right: Int64,
    grid: Sequence[float] = GRID,
    method: Method | None = None,
) -> BetaChoice:
    """Choose β by R@1 on validation queries; of equal ones by mean rank, then the smaller.

    Cost: one fit and one ranking per β.

    Args:
        bank: Similarities of the bank, `[bank, items]`.
        queries: Similarities of the validation queries, `[queries, items]`.
        right: `[queries]`, the number of each query's right item.
        grid: The β to try, made for cosines; divide them by the scale of logits.
        method: A method with a `beta`; dynamic inverted softmax by default.

    Returns:
        The chosen β, and R@1 and mean rank of every β.

    Raises:
        HubnessError: There are no queries, the grid is empty, the method has no `beta`, or the shapes do
            not fit.

    >>> rng = np.random.default_rng(0)
    >>> bank, queries = rng.uniform(-0.1, 0.1, (50, 8)), 0.2 * np.eye(8)
    >>> choice = choose_beta(bank, queries, np.arange(8), grid=(5.0, 20.0))
    >>> choice.beta, choice.tried[0].r1
    (5.0, 100.0)
    """
    method = method or DynamicInvertedSoftmax()
    tried = []
    for candidate in _candidates(method, grid):
        ranks = corrected_ranks(candidate, candidate.fit(bank), queries, right)
        if len(ranks) == 0:
            raise HubnessError("no validation queries; use choose_beta_unlabelled")
        tried.append(BetaTrial(_beta(candidate), 100 * float(np.mean(ranks == 1)), float(np.mean(ranks))))
    best = min(tried, key=lambda t: (-t.r1, t.mean_rank, t.beta))
    return BetaChoice(best.beta, tuple(tried))


def choose_beta_unlabelled(bank: Array) -> float:
    """Choose β without labels: SPREADS over the usual spread of an item's bank similarities.

    Cost: one pass over the bank. Items without spread do not count; if none has any, it is the published 20.

    Args:
        bank: Similarities of the bank, `[bank, items]`, at least two queries.

    Returns:
        β to two significant digits: inversely proportional to the scale of the similarities.

    Raises:
        HubnessError: The bank has fewer than two queries.

    >>> bank = np.random.default_rng(0).normal(0, 0.1, (200, 40))
    >>> choose_beta_unlabelled(bank), choose_beta_unlabelled(100 * bank)
    (15.0, 0.15)
    """
    bank = matrix(bank, "the bank")
    if len(bank) < 2:
        raise HubnessError("choosing beta without labels needs a bank of at least two queries")
    spreads = bank.std(axis=0, dtype=np.float64)
    known = spreads[spreads > SAME * np.abs(bank).max(initial=0)]
    return float(f"{SPREADS / np.median(known):.2g}") if len(known) else PUBLISHED


def _candidates(method: Method, grid: Sequence[float]) -> list[Method]:
    if not hasattr(method, "beta"):
        raise HubnessError(f"{method.name!r} has no beta to choose")
    if not grid:
        raise HubnessError("the grid of betas is empty")
    untyped: Any = method
    return [replace(untyped, beta=float(beta)) for beta in grid]


def _beta(method: Method) -> float:
    return float(method.beta)  # type: ignore[attr-defined]
