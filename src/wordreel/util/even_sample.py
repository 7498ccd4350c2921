"""Some of many rows, evenly spaced from the first to the last."""

from __future__ import annotations

import numpy as np


def even_sample(count: int, most: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the numbers of at most `most` of `count` rows.

    >>> even_sample(10, 4).tolist(), even_sample(2, 4).tolist()
    ([0, 3, 6, 9], [0, 1])
    """
    return np.linspace(0, count - 1, min(count, most)).round().astype(np.int64)
