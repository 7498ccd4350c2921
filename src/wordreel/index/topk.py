"""The k best of each row, equal values in the order of the columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def topk_ids(values: NDArray[Any], k: int) -> NDArray[np.int64]:
    """Return `[rows, min(k, columns)]` column numbers, best first.

    Of equal values the lower number comes first.

    What is not a number ranks with -inf (`rank_nan_last`).

    Cost: one partition of the rows and a sort of k entries each.

    >>> topk_ids(np.array([[0.2, 0.9, 0.2, 0.9]]), 3).tolist()
    [[1, 3, 0]]
    """
    columns = values.shape[1]
    values = rank_nan_last(values)
    k = min(k, columns)
    if k == 1:
        return np.asarray(values.argmax(axis=1)[:, None])
    if k == columns:
        return np.argsort(-values, axis=1, kind="stable")
    edge = np.partition(values, columns - k, axis=1)[:, columns - k, None]
    above = values > edge
    level = values == edge
    ties = k - above.sum(axis=1, keepdims=True)
    chosen = above | (level & (np.cumsum(level, axis=1) <= ties))
    ids = np.nonzero(chosen)[1].reshape(len(values), k)
    order = np.argsort(-np.take_along_axis(values, ids, axis=1), axis=1, kind="stable")
    return np.take_along_axis(ids, order, axis=1)


def rank_nan_last(values: NDArray[Any]) -> NDArray[Any]:
    """Return the values with -inf for NaN: damaged embeddings are not found, and hide no others.

    >>> rank_nan_last(np.array([0.5, np.nan])).tolist()
    [0.5, -inf]
    """
    return np.where(np.isnan(values), -np.inf, values) if np.isnan(values.sum()) else values
