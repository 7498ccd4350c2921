"""Which β to use: by validation pairs where there are some, by the bank alone where there are none.

With pairs, `choose_beta` takes the β of a grid with the highest R@1, and of those the lowest mean rank.

Without, `choose_beta_unlabelled` splits the bank in two (every other query), corrects each half by a method
fitted on the other, and measures how skewed the k-occurrences of the held-out queries are. Hubs skew them,
and so does a β so large that the correction follows single queries of the half it was fitted on. It takes the
largest β whose skewness is within one standard error, √(6/items), of the smallest: small β all tend to plain
centring and cannot be told apart by skewness. It sees no answers, so it can miss the best R@1; it is meant
for a first setting.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wordreel.errors import HubnessError
from wordreel.hubness.blocks import Array, Ids, matrix
from wordreel.hubness.dynamic_inverted_softmax import DynamicInvertedSoftmax
from wordreel.hubness.inverted_softmax import InvertedSoftmax
from wordreel.hubness.measures import k_occurrence, skewness
from wordreel.hubness.method import Method
from wordreel.hubness.ranks import corrected_ranks

GRID = (1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 30.0, 50.0, 75.0, 100.0)  # for cosines


@dataclass(frozen=True)
class BetaTrial:
    """One β and what it gave; a measure that was not taken is None."""

    beta: float
    r1: float | None = None
    mean_rank: float | None = None
    skewness: float | None = None


@dataclass(frozen=True)
class BetaChoice:
    """The chosen β and everything that was tried, in the order of the grid."""

    beta: float
    tried: tuple[BetaTrial, ...]


def choose_beta(
    bank: Array,
    queries: Array,
    right: Ids,
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
    best = min(tried, key=lambda t: (-(t.r1 or 0), t.mean_rank or 0, t.beta))
    return BetaChoice(best.beta, tuple(tried))


def choose_beta_unlabelled(
    bank: Array, grid: Sequence[float] = GRID, k: int = 10, method: Method | None = None
) -> BetaChoice:
    """Choose β without labels: the largest one whose k-occurrences of held-out bank queries are about the
    least skewed.

    Args:
        bank: Similarities of the bank, `[bank, items]`, at least two queries.
        grid: The β to try, made for cosines; divide them by the scale of logits.
        k: How many items each query retrieves.
        method: A method with a `beta`; inverted softmax by default, since a gate hides most of what β does
            to the bank's own queries.

    Returns:
        The chosen β, and the skewness of every β.

    Raises:
        HubnessError: The bank has fewer than two queries, the grid is empty, or the method has no `beta`.

    >>> bank = np.random.default_rng(0).normal(size=(200, 40)) / 10
    >>> choice = choose_beta_unlabelled(bank, grid=(1.0, 10.0, 100.0))
    >>> choice.beta in (1.0, 10.0, 100.0), len(choice.tried)
    (True, 3)
    """
    bank = matrix(bank, "the bank")
    if len(bank) < 2:
        raise HubnessError("choosing beta without labels splits the bank; it needs at least two queries")
    halves = (bank[0::2], bank[1::2])
    tried = []
    for candidate in _candidates(method or InvertedSoftmax(), grid):
        counts = [
            k_occurrence(candidate.apply(held, candidate.fit(seen)), k)
            for seen, held in (halves, halves[::-1])
        ]
        tried.append(BetaTrial(_beta(candidate), skewness=float(np.mean([skewness(c) for c in counts]))))
    least = min(t.skewness or 0 for t in tried)
    near = [t.beta for t in tried if (t.skewness or 0) <= least + math.sqrt(6 / bank.shape[1])]
    return BetaChoice(max(near), tuple(tried))


def _candidates(method: Method, grid: Sequence[float]) -> list[Method]:
    if not hasattr(method, "beta"):
        raise HubnessError(f"{method.name!r} has no beta to choose")
    if not grid:
        raise HubnessError("the grid of betas is empty")
    untyped: Any = method
    return [replace(untyped, beta=float(beta)) for beta in grid]


def _beta(method: Method) -> float:
    return float(method.beta)  # type: ignore[attr-defined]
