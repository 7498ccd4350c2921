"""The part of a frame in which text is likely."""

from __future__ import annotations

import math

import numpy as np

from wordreel.types import Float32

Region = tuple[float, float, float, float]
"""Left, top, right and bottom, as shares of a frame's width and height."""

WHOLE: Region = (0.0, 0.0, 1.0, 1.0)
LIKELY = 0.1  # the detector's probability that calls for a closer look; it takes 0.3 for text
AROUND = 0.03  # ... and the one that still belongs to what is looked at
MARGIN = 16  # cells around it


def likely_region(chances: Float32) -> Region | None:
    """The part of a frame that may hold text, from the probability in each cell, `[rows, columns]`.

    >>> chances = np.zeros((100, 200), np.float32)
    >>> likely_region(chances) is None
    True
    >>> chances[50:60, 100:140] = 0.9
    >>> likely_region(chances)
    (0.42, 0.34, 0.78, 0.76)
    """
    if chances.max(initial=0.0) < LIKELY:
        return None
    rows, columns = np.nonzero(chances >= AROUND)
    height, width = chances.shape
    return (
        max(0, int(columns.min()) - MARGIN) / width,
        max(0, int(rows.min()) - MARGIN) / height,
        min(width, int(columns.max()) + 1 + MARGIN) / width,
        min(height, int(rows.max()) + 1 + MARGIN) / height,
    )


def pixels_of(region: Region, width: int, height: int) -> tuple[int, int, int, int]:
    """A region in pixels, at least one of them.

    >>> pixels_of((0.25, 0.0, 0.5, 1.0), 10, 4)
    (2, 0, 5, 4)
    """
    left, top = min(width - 1, int(region[0] * width)), min(height - 1, int(region[1] * height))
    right, bottom = math.ceil(region[2] * width), math.ceil(region[3] * height)
    return left, top, max(left + 1, min(right, width)), max(top + 1, min(bottom, height))
