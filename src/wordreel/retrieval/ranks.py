"""Ranks of the right answers in rows of similarities.

A rank is 1 for the best. Items that score the same share the mean of their ranks, so a model that cannot tell
items apart gets the rank of a guess, never better:

    rank = 1 + |{v : s(v) > s(right)}| + |{v ≠ right : s(v) = s(right)}| / 2

A score that is not a number is below every number. Cost: one pass over the similarities, no sorting.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordreel.types import Float64


def ranks_of(similarities: NDArray[Any], right: NDArray[np.int64]) -> Float64:
    """Return the rank of column `right[i]` in each row of `similarities [queries, items]`.

    >>> ranks_of(np.array([[0.1, 0.9, 0.9]], np.float32), np.array([1])).tolist()
    [1.5]
    """
    return ranks_against(similarities, np.take_along_axis(similarities, right[:, None], axis=1))


def ranks_against(scores: NDArray[Any], own: NDArray[Any]) -> Float64:
    """Rank in each row of `scores [queries, items]` of the score `own [queries, 1]` that is in that row."""
    at_least, above = (
        np.count_nonzero(compare(scores, own), axis=1) for compare in (np.greater_equal, np.greater)
    )
    nan = np.flatnonzero(own[:, 0] != own[:, 0])
    above[nan] = np.count_nonzero(~np.isnan(scores[nan]), axis=1)
    at_least[nan] = scores.shape[1]
    return np.asarray(1 + above + (at_least - above - 1) / 2, np.float64)
