"""Which frames of a video a model reads, by CLIP4Clip's rules; nothing here decodes.

The published loader reads a video second by second: `rate` frames of each second at whole multiples of the
frame rate, which it rounds down to an integer. Of more than `most` frames it keeps the first, the last or
evenly spaced ones (its `slice_framepos` 0, 1 and 2).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

import numpy as np

from wordreel.types import Int64

Position = Literal["first", "last", "uniform"]


def candidates(frames: int, frame_rate: float, rate: float) -> Int64:
    """Return the numbers of the frames at `rate` per second of a video of `frames` frames.

    A rate of 5/2 takes every second one of 5 frames a second, as CLIP2Video's `feature_framerate` 2 does.

    >>> candidates(70, 29.97, 1).tolist()
    [0, 29, 58]
    >>> candidates(30, 10.0, 2).tolist()
    [0, 5, 10, 15, 20, 25]
    >>> candidates(30, 10.0, 2.5).tolist()
    [0, 4, 8, 12, 16, 20, 24, 28]
    """
    extracted, every = Fraction(rate).limit_denominator(100).as_integer_ratio()
    whole = max(1, int(frame_rate))
    within = np.arange(0, whole, max(1, whole // extracted))[:extracted]
    numbers = (np.arange(0, frames, whole)[:, None] + within).reshape(-1)
    return numbers[numbers < frames].astype(np.int64)[::every]


def choose(count: int, most: int, position: Position) -> Int64:
    """Which of `count` candidates are read when at most `most` may be.

    >>> choose(7, 3, "uniform").tolist(), choose(7, 3, "first").tolist(), choose(7, 3, "last").tolist()
    ([0, 3, 6], [0, 1, 2], [4, 5, 6])
    """
    if count <= most:
        return np.arange(count)
    if position == "first":
        return np.arange(most)
    if position == "last":
        return np.arange(count - most, count)
    return np.linspace(0, count - 1, num=most, dtype=np.int64)


def frame_numbers(frames: int, frame_rate: float, rate: float, most: int, position: Position) -> Int64:
    """The frames that a model reads, in order."""
    found = candidates(frames, frame_rate, rate)
    return found[choose(len(found), most, position)]
