"""Ranks of the right answers in rows and columns of similarities.

A rank is 1 for the best. Items that score the same share the mean of their ranks, so a model that cannot tell
items apart gets the rank of a guess, never better:

    rank = 1 + |{v : s(v) > s(right)}| + |{v ≠ right : s(v) = s(right)}| / 2

`ties` asks for the bounds instead: the first of the shared ranks (optimistic) or the last (pessimistic). A
score that is not a number is below every number. Cost: one pass over the similarities, no sorting.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from wordreel.errors import EvaluationError
from wordreel.types import Float64

Ties = Literal["average", "optimistic", "pessimistic"]

BYTE = 255  # rows whose hits a byte can count


def ranks_of(similarities: NDArray[Any], right: NDArray[np.int64], ties: Ties = "average") -> Float64:
    """Rank of column `right[i]` in each row of `similarities [queries, items]`.

    >>> ranks_of(np.array([[0.1, 0.9, 0.9]], np.float32), np.array([1])).tolist()
    [1.5]
    """
    return ranks_against(similarities, np.take_along_axis(similarities, right[:, None], axis=1), ties)


def ranks_against(scores: NDArray[Any], own: NDArray[Any], ties: Ties = "average") -> Float64:
    """Rank in each row of `scores [queries, items]` of the score `own [queries, 1]` that is in that row."""
    _check_ties(ties)
    at_least, above = (
        np.count_nonzero(compare(scores, own), axis=1) for compare in (np.greater_equal, np.greater)
    )
    nan = np.flatnonzero(own[:, 0] != own[:, 0])
    above[nan] = np.count_nonzero(~np.isnan(scores[nan]), axis=1)
    at_least[nan] = scores.shape[1]
    return _rank(above, at_least, ties)


def ranks_down(blocks: Iterable[NDArray[Any]], own: NDArray[Any], ties: Ties = "average") -> Float64:
    """Rank in each column of the score `own [columns]` that is in it; `blocks` are rows of the matrix.

    For matrices in column-major order: every block is read once, in the order of memory.
    """
    _check_ties(ties)
    at_least, above = np.zeros(len(own), np.int64), np.zeros(len(own), np.int64)
    nan = np.flatnonzero(own != own)
    rows_read = 0
    for block in blocks:
        rows_read += len(block)
        above[nan] += np.count_nonzero(~np.isnan(block[:, nan]), axis=0)
        for start in range(0, len(block), BYTE):
            rows = block[start : start + BYTE]
            # Bytes add up many times as fast as int64.
            at_least += np.add.reduce((rows >= own).view(np.uint8), axis=0, dtype=np.uint8)
            above += np.add.reduce((rows > own).view(np.uint8), axis=0, dtype=np.uint8)
    at_least[nan] = rows_read
    return _rank(above, at_least, ties)


def _rank(above: NDArray[Any], at_least: NDArray[Any], ties: Ties) -> Float64:
    if ties == "optimistic":
        return np.asarray(1 + above, np.float64)
    if ties == "pessimistic":
        return np.asarray(at_least, np.float64)
    return np.asarray(1 + above + (at_least - above - 1) / 2, np.float64)


def _check_ties(ties: str) -> None:
    if ties not in get_args(Ties):
        raise EvaluationError(f"ties are average, optimistic or pessimistic, not {ties!r}")
