"""Cutting a face out upright, eyes and mouth where the recognition network learnt to expect them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wordreel.types import Float64

SIZE = 112
TEMPLATE: Float64 = np.array(
    [(38.2946, 51.6963), (73.5318, 51.5014), (56.0252, 71.7366), (41.5493, 92.3655), (70.7299, 92.2041)]
)
"""Where an aligned face has its two eyes, nose tip and mouth corners, left to right as seen, in pixels."""


def similarity_transform(points: Float64, template: Float64 = TEMPLATE) -> Float64:
    """`[2, 3]`: the rotation, scale and shift with the least squared error from points to template.

    With both sets centred and seen as complex numbers p, t, the best rotation and scale is the complex
    factor a = Σ p̄ t / Σ |p|²: the closed form of Umeyama (1991) in the plane, where no mirroring arises.
    """
    middle, goal = points.mean(0), template.mean(0)
    p = (points - middle) @ (1, 1j)
    t = (template - goal) @ (1, 1j)
    factor = np.vdot(p, t) / max(float(np.vdot(p, p).real), 1e-9)
    turn = np.array([[factor.real, -factor.imag], [factor.imag, factor.real]])
    return np.column_stack([turn, goal - turn @ middle])


def align(image: NDArray[np.uint8], points: Float64) -> NDArray[np.uint8]:
    """The face with these five points in `image [h, w, 3]`, as `[112, 112, 3]`."""
    import cv2

    cut: NDArray[np.uint8] = cv2.warpAffine(
        image, similarity_transform(points), (SIZE, SIZE), flags=cv2.INTER_LINEAR
    )
    return cut
