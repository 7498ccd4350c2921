"""Large arrays in pages of their own, which go back to the system with the array."""

from __future__ import annotations

import math
import mmap
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGE = 4 << 20  # bytes


def page_zeros(shape: Sequence[int], dtype: Any) -> NDArray[Any]:
    """Return an array of zeros that takes memory where it is written, and none when it is dropped.

    After a few large arrays were freed, `malloc` takes the next ones from its heaps, where what outlives them
    keeps their memory: hundreds of megabytes while files are added. Huge pages make new ones cheap.

    >>> page_zeros((2, 3), np.uint8).tolist()
    [[0, 0, 0], [0, 0, 0]]
    """
    count = math.prod(shape)
    size = count * np.dtype(dtype).itemsize
    if size < LARGE:
        return np.zeros(shape, dtype)
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANON)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # a kernel without them
            pages.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(pages, dtype, count).reshape(shape)
