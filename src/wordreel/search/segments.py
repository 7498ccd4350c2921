"""Maxima over consecutive segments of an array: the items of one video after those of another."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordreel.types import Bool, Int64

Scores = NDArray[np.floating[Any]]


def take_segments(members: Int64, edges: Int64, chosen: Int64) -> tuple[Int64, Int64]:
    """Return the members of some segments in one array, and where each of these starts.

    `edges` are where each segment of `members` starts and the last one ends.

    >>> members, edges = np.array([4, 0, 2, 1, 3]), np.array([0, 2, 3, 5])
    >>> [array.tolist() for array in take_segments(members, edges, np.array([2, 0]))]
    [[1, 3, 4, 0], [0, 2]]
    """
    sizes = edges[chosen + 1] - edges[chosen]
    starts = np.cumsum(sizes) - sizes
    at = np.repeat(edges[chosen] - starts, sizes) + np.arange(sizes.sum())
    return members[at], starts


def distinct(values: NDArray[np.integer[Any]]) -> Int64:
    """Return the values, each once, in order.

    NumPy's `unique` would import masked arrays at the first search.

    >>> distinct(np.array([3, 1, 3])).tolist()
    [1, 3]
    """
    ordered = np.sort(values)
    return np.asarray(ordered[_first_of_equals(ordered)], np.int64)


def first_places(values: NDArray[np.integer[Any]]) -> Int64:
    """Return where each value comes first, in order.

    >>> first_places(np.array([3, 1, 3, 2])).tolist()
    [0, 1, 3]
    """
    order = np.argsort(values, kind="stable")
    return np.asarray(np.sort(order[_first_of_equals(values[order])]), np.int64)


def _first_of_equals(ordered: NDArray[np.integer[Any]]) -> Bool:
    first = np.ones(len(ordered), bool)
    first[1:] = ordered[1:] != ordered[:-1]
    return first


def segment_max(values: Scores, starts: Int64) -> Scores:
    """Return the maximum of each segment, along the last axis."""
    best: Scores = np.maximum.reduceat(values, starts, axis=-1)
    return best


def segment_argmax(values: Scores, starts: Int64) -> tuple[Scores, Int64]:
    """Return the maximum of each segment, along the last axis, and its position, the first of equals.

    >>> [found.tolist() for found in segment_argmax(np.array([1.0, 3.0, 3.0, 0.0, 0.0]), np.array([0, 3]))]
    [[3.0, 0.0], [1, 3]]
    """
    count = values.shape[-1]
    best = segment_max(values, starts)
    sizes = np.diff(np.append(starts, count))
    reached = np.where(values == np.repeat(best, sizes, axis=-1), np.arange(count), count)
    return best, np.asarray(np.minimum.reduceat(reached, starts, axis=-1), np.int64)
