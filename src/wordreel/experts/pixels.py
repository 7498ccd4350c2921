"""Bringing frames to the size a network wants."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def resize_crop(images: NDArray[np.uint8], size: int) -> NDArray[np.uint8]:
    """The central square of every picture, scaled to `size`: `[n, h, w, 3]` to `[n, size, size, 3]` uint8.

    The same as scaling the shorter side to `size` and cropping the middle, but cutting first, so that a
    picture of one pixel by a million costs nothing. Shrinking averages, enlarging interpolates.

    >>> resize_crop(np.zeros((2, 30, 50, 3), np.uint8), 20).shape
    (2, 20, 20, 3)
    """
    import cv2

    count, height, width = images.shape[:3]
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    square = images[:, top : top + side, left : left + side]
    if side == size:
        return np.ascontiguousarray(square)
    how = cv2.INTER_AREA if side > size else cv2.INTER_LINEAR
    made = np.empty((count, size, size, 3), np.uint8)
    for number, picture in enumerate(square):
        made[number] = cv2.resize(np.ascontiguousarray(picture), (size, size), interpolation=how)
    return made
