"""Bins for whole numbers: ranks, which span decades, and k-occurrences, where 0 is a bin of its own."""

from __future__ import annotations

import math

import numpy as np

from wordreel.types import Float64

BINS = 40


def log_edges(low: float, high: float, bins: int = 30) -> Float64:
    """Edges of bins for whole numbers from `low ≥ 1` to `high`: the first alone, then equally wide in log.

    >>> log_edges(1, 10, 4).tolist()
    [1.0, 2.0, 3.0, 6.0, 11.0]
    """
    if not 1 <= low <= high:
        raise ValueError(f"whole numbers from 1 up are binned, not {low} to {high}")
    whole = np.floor(np.geomspace(low, high + 1, bins + 1) + 1e-9)
    return np.asarray(np.unique([*whole, math.floor(low) + 1, math.floor(high) + 1]), np.float64)


def occurrence_edges(largest: int) -> Float64:
    """Bins of equal whole width; the first holds only 0, what is never retrieved.

    >>> occurrence_edges(3).tolist()
    [0.0, 1.0, 2.0, 3.0, 4.0]
    """
    step = max(1, -(-largest // BINS))
    return np.concatenate([[0.0], np.arange(1, max(1, largest) + step + 1, step, dtype=np.float64)])
