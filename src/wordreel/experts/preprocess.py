"""Preprocessing of frames: resize, crop, normalise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wordreel.types import Float32

Triple = tuple[float, float, float]


@dataclass(frozen=True)
class Preprocess:
    """Square pictures of `size` pixels, every channel as `(value · unit − mean) / std`.

    The shorter side is resized to `short_side` (or `size`) and the centre cropped; with `squash` the whole
    picture is resized to the square instead. `bgr` orders channels blue, green, red.
    """

    size: int
    mean: Triple
    std: Triple
    short_side: int = 0
    squash: bool = False
    bgr: bool = False
    unit: float = 1 / 255

    def __call__(self, images: NDArray[np.uint8]) -> Float32:
        """`[n, h, w, 3]` uint8 RGB to `[n, 3, size, size]` float32."""
        pixels = self.crop(images)
        if self.bgr:
            pixels = pixels[..., ::-1]
        scale = np.float32(self.unit) / np.array(self.std, np.float32)
        shift = np.array(self.mean, np.float32) / np.array(self.std, np.float32)
        return np.ascontiguousarray((pixels * scale - shift).transpose(0, 3, 1, 2), np.float32)

    def crop(self, images: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Crop `[n, h, w, 3]` to `[n, size, size, 3]`."""
        if self.squash:
            return resize_square(images, self.size)
        side = min(images.shape[1:3])
        square = resize_square(_centre(images, side), self.short_side or self.size)
        return _centre(square, self.size)


def resize_square(images: NDArray[np.uint8], size: int, bicubic: bool = True) -> NDArray[np.uint8]:
    """Resize to a square: area averaging to shrink, bicubic (or bilinear) interpolation to enlarge."""
    import cv2

    count, height, width = images.shape[:3]
    if (height, width) == (size, size):
        return images
    enlarge = cv2.INTER_CUBIC if bicubic else cv2.INTER_LINEAR
    how = cv2.INTER_AREA if height * width > size * size else enlarge
    resized = np.empty((count, size, size, 3), np.uint8)
    for number, picture in enumerate(images):
        resized[number] = cv2.resize(np.ascontiguousarray(picture), (size, size), interpolation=how)
    return resized


def resize_crop(images: NDArray[np.uint8], size: int) -> NDArray[np.uint8]:
    """Crop the central square and resize it: `[n, h, w, 3]` to `[n, size, size, 3]` uint8.

    The same as resizing the shorter side and cropping the centre, but cropping first, so that a picture of
    one pixel by a million costs nothing. Area averaging to shrink, bilinear interpolation to enlarge.

    >>> resize_crop(np.zeros((2, 30, 50, 3), np.uint8), 20).shape
    (2, 20, 20, 3)
    """
    square = _centre(images, min(images.shape[1:3]))
    return np.ascontiguousarray(resize_square(square, size, bicubic=False))


def _centre(images: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    top, left = (images.shape[1] - side) // 2, (images.shape[2] - side) // 2
    return images[:, top : top + side, left : left + side]


IMAGENET: tuple[Triple, Triple] = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
KINETICS: tuple[Triple, Triple] = (0.43216, 0.394666, 0.37645), (0.22803, 0.22145, 0.216989)
CENTRED: tuple[Triple, Triple] = (0.5, 0.5, 0.5), (0.5, 0.5, 0.5)
"""Mean and spread of red, green and blue in [0, 1]; `CENTRED` makes [-1, 1]."""
