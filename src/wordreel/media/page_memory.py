"""Arrays in pages of their own, which go back to the system with the array."""

from __future__ import annotations

import math
import mmap
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def page_zeros(shape: Sequence[int], dtype: Any) -> NDArray[Any]:
    """An array of zeros whose pages take memory once they are written, and none when it is dropped.

    After a few large arrays were freed, `malloc` takes the next ones from its heaps, where what outlives them
    keeps their memory: hundreds of megabytes while files are added.

    >>> page_zeros((2, 3), np.uint8).tolist()
    [[0, 0, 0], [0, 0, 0]]
    """
    count = math.prod(shape)
    pages = mmap.mmap(-1, max(1, count * np.dtype(dtype).itemsize))
    return np.frombuffer(pages, dtype, count).reshape(shape)
