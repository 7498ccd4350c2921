"""How a network of the papers wants its pictures: size, crop, and the numbers pixels become."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wordreel.types import Float32

Triple = tuple[float, float, float]


@dataclass(frozen=True)
class Preparation:
    """Square pictures of `size` pixels, every channel as `(value · unit − mean) / std`.

    The shorter side is scaled to `short_side` (or `size`) and the middle is cut out; with `squash` the whole
    picture is scaled to the square instead. `swap` puts channels in the order blue, green, red.
    """

    size: int
    mean: Triple
    std: Triple
    short_side: int = 0
    squash: bool = False
    swap: bool = False
    unit: float = 1 / 255

    def __call__(self, images: NDArray[np.uint8]) -> Float32:
        """`[n, h, w, 3]` uint8 RGB to `[n, 3, size, size]` float32."""
        pixels = self.cut(images)
        if self.swap:
            pixels = pixels[..., ::-1]
        scale = np.float32(self.unit) / np.array(self.std, np.float32)
        shift = np.array(self.mean, np.float32) / np.array(self.std, np.float32)
        return np.ascontiguousarray((pixels * scale - shift).transpose(0, 3, 1, 2), np.float32)

    def cut(self, images: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """`[n, h, w, 3]` to `[n, size, size, 3]`."""
        if self.squash:
            return scaled(images, self.size)
        side = min(images.shape[1:3])
        square = scaled(_middle(images, side), self.short_side or self.size)
        return _middle(square, self.size)


def scaled(images: NDArray[np.uint8], size: int) -> NDArray[np.uint8]:
    """Every picture scaled to a square: shrinking averages, enlarging interpolates with cubics."""
    import cv2

    count, height, width = images.shape[:3]
    if (height, width) == (size, size):
        return images
    how = cv2.INTER_AREA if height * width > size * size else cv2.INTER_CUBIC
    made = np.empty((count, size, size, 3), np.uint8)
    for number, picture in enumerate(images):
        made[number] = cv2.resize(np.ascontiguousarray(picture), (size, size), interpolation=how)
    return made


def _middle(images: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    top, left = (images.shape[1] - side) // 2, (images.shape[2] - side) // 2
    return images[:, top : top + side, left : left + side]


IMAGENET: tuple[Triple, Triple] = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
CLIP: tuple[Triple, Triple] = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
KINETICS: tuple[Triple, Triple] = (0.43216, 0.394666, 0.37645), (0.22803, 0.22145, 0.216989)
CENTRED: tuple[Triple, Triple] = (0.5, 0.5, 0.5), (0.5, 0.5, 0.5)
"""Mean and spread of red, green and blue in [0, 1]; `CENTRED` makes [-1, 1]."""
