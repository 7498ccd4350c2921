"""Matrices as bytes with a scale per row, a quarter of the size of float32.

W[i, j] ≈ scale[i] · q[i, j],   scale[i] = max |W[i]| / 127
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordreel.types import Float32


def quantise(array: Float32) -> tuple[NDArray[np.int8], Float32]:
    """`[rows, columns]` as bytes and a scale per row.

    >>> small, scales = quantise(np.array([[0.5, -1.0], [0.0, 0.0]], np.float32))
    >>> small.tolist(), dequantise(small, scales).round(2).tolist()
    ([[64, -127], [0, 0]], [[0.5, -1.0], [0.0, 0.0]])
    """
    scales = np.maximum(np.abs(array).max(axis=1), 1e-12) / 127
    return np.rint(array / scales[:, None]).astype(np.int8), scales.astype(np.float32)


def dequantise(small: NDArray[Any], scales: Float32) -> Float32:
    """The rows as float32 again."""
    return np.asarray(small.astype(np.float32) * scales[:, None], np.float32)
