"""The orientation of frames. Decoders return frames as stored; players rotate them, and so do we."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

# An orientation is 0..7: quarter turns counter-clockwise, plus 4 when mirrored left-right beforehand.


def orientation(frame: Any, stream: Any) -> int:
    """Return the orientation in a frame's display matrix (from EXIF in photographs), 0 without one."""
    try:
        matrix = frame.side_data.get("DISPLAYMATRIX")
    except (ValueError, KeyError):
        # PyAV cannot list side data of kinds it does not know, EXIF among them; the angle is still available.
        return int(round(frame.rotation / 90) % 4)
    if matrix is None or len(matrix := bytes(matrix)) < 36:
        return 0
    a, b, _, c, d = struct.unpack("=5i", matrix[:20])
    # Rows of the matrix: x' = a x + c y, y' = b x + d y, with y pointing down.
    return _MATRICES.get((_sign(a), _sign(b), _sign(c), _sign(d)), 0)


def displayed_size(width: int, height: int, orientation: int) -> tuple[int, int]:
    """Return the displayed size of a frame stored as `width` x `height`."""
    return (height, width) if orientation % 2 else (width, height)


def upright(image: NDArray[np.uint8], orientation: int) -> NDArray[np.uint8]:
    """Return the image as displayed; `[h, w, 3]` in, the same pixels turned out."""
    if orientation & 4:
        image = image[:, ::-1]
    return np.rot90(image, orientation & 3)


def _sign(value: int) -> int:
    # A quarter turn has entries of 65536 or 0; anything slanted rounds to the nearest quarter.
    return (value > 32768) - (value < -32768)


_MATRICES = {
    (1, 0, 0, 1): 0,
    (0, -1, 1, 0): 1,
    (-1, 0, 0, -1): 2,
    (0, 1, -1, 0): 3,
    (-1, 0, 0, 1): 4,
    (0, 1, 1, 0): 5,
    (1, 0, 0, -1): 6,
    (0, -1, -1, 0): 7,
}
