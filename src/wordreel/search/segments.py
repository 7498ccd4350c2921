"""Items of many videos in one row of numbers, video after video: the best of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordreel.types import Int64

Scores = NDArray[np.floating[Any]]


def concat_segments(groups: Iterable[Sequence[int]]) -> tuple[Int64, Int64]:
    """The members of all groups, group after group, and where each group begins.

    >>> [found.tolist() for found in concat_segments([[4, 0], [2], [1, 3]])]
    [[4, 0, 2, 1, 3], [0, 2, 3]]
    """
    members = [np.array(group, np.int64) for group in groups]
    return np.concatenate(members), np.cumsum([0, *map(len, members)])[:-1]


def best_of(values: Scores, edges: Int64) -> Scores:
    """The greatest value of each group, along the last axis."""
    best: Scores = np.maximum.reduceat(values, edges, axis=-1)
    return best


def segment_argmax(values: Scores, edges: Int64) -> tuple[Scores, Int64]:
    """The greatest value of each group, along the last axis, and where it is, the first of equals.

    >>> [found.tolist() for found in segment_argmax(np.array([1.0, 3.0, 3.0, 0.0, 0.0]), np.array([0, 3]))]
    [[3.0, 0.0], [1, 3]]
    """
    count = values.shape[-1]
    best = best_of(values, edges)
    sizes = np.diff(np.append(edges, count))
    reached = np.where(values == np.repeat(best, sizes, axis=-1), np.arange(count), count)
    return best, np.asarray(np.minimum.reduceat(reached, edges, axis=-1), np.int64)
