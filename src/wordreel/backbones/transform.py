"""Pictures as the image towers take them: resized as Pillow resizes, cropped, normalised.

Resizing equals Pillow's to the last bit: two passes (columns, then rows), each a weighted mean over the
filter's support in fixed-point numbers, rounded to bytes. Filters widen when they shrink a picture
(antialiasing). Pillow 13 begins with the rows of some tall pictures, which rounds differently. Only the
pixels that remain after cropping are computed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from wordreel.backbones.config import ImageTransform
from wordreel.types import Float32, Float64, Int64

PRECISION = 22  # bits after the point
Images = NDArray[np.uint8]


def transform_images(images: Images, transform: ImageTransform) -> Float32:
    """`[n, h, w, 3]` bytes to `[n, 3, size, size]`: resize, crop, `(value / 255 − mean) / std`."""
    return normalize(resize_images(images, transform), transform)


def resize_images(images: Images, transform: ImageTransform) -> Images:
    """`[n, h, w, 3]` to `[n, size, size, 3]`.

    >>> resize_images(np.zeros((2, 30, 50, 3), np.uint8), ImageTransform(size=20)).shape
    (2, 20, 20, 3)
    """
    size, (height, width) = transform.size, images.shape[1:3]
    new_height, new_width = size, size
    if transform.resize == "crop":
        short = min(height, width)
        new_height, new_width = int(size * height / short), int(size * width / short)
    resized = np.empty((len(images), size, size, 3), np.uint8)
    for number, image in enumerate(images):
        columns = _resample(image.swapaxes(0, 1), new_width, size, transform.interpolation)
        resized[number] = _resample(columns.swapaxes(0, 1), new_height, size, transform.interpolation)
    return resized


def normalize(images: Images, transform: ImageTransform) -> Float32:
    """`[n, size, size, 3]` bytes to `[n, 3, size, size]` float32: `(value / 255 − mean) / std`."""
    mean, std = (np.array(values, np.float32)[:, None, None] for values in (transform.mean, transform.std))
    pixels = np.ascontiguousarray(images.transpose(0, 3, 1, 2), np.float32)
    pixels /= np.float32(255)
    pixels -= mean
    pixels /= std
    return pixels


def _resample(image: Images, new: int, keep: int, interpolation: str) -> Images:
    """Resize the first axis of `[n, m, 3]` to `new`, of which the middle `keep` are returned."""
    old = len(image)
    # As torchvision crops: half to even where the margins differ.
    first = round((new - keep) / 2)
    if new == old:
        return image[first : first + keep]
    lows, weights = _weights(old, new, first, first + keep, interpolation)
    start, stop = int(lows[0]), min(int(lows[-1]) + weights.shape[1], old)
    lines = np.ascontiguousarray(image[start:stop]).reshape(stop - start, -1)
    sums = np.full((keep, lines.shape[1]), 1 << (PRECISION - 1), np.int32)
    for tap in range(weights.shape[1]):
        chosen = np.minimum(lows - start + tap, len(lines) - 1)  # weights beyond the end are 0
        sums += lines[chosen] * weights[:, tap, None]
    resized: Images = np.clip(sums >> PRECISION, 0, 255).astype(np.uint8)
    return resized.reshape(keep, *image.shape[1:])


@lru_cache(maxsize=64)
def _weights(
    old: int, new: int, start: int, stop: int, interpolation: str
) -> tuple[Int64, NDArray[np.int32]]:
    """For each of the outputs `start:stop`, its first input and the weights from there on."""
    kernel, reach = KERNELS[interpolation]
    scale = old / new
    widen = max(scale, 1.0)
    support = reach * widen
    centres = (np.arange(start, stop) + 0.5) * scale
    lows = np.maximum((centres - support + 0.5).astype(np.int64), 0)
    highs = np.minimum((centres + support + 0.5).astype(np.int64), old)
    weights = np.zeros((stop - start, int((highs - lows).max())), np.int32)
    for row, (centre, low, high) in enumerate(zip(centres, lows, highs, strict=True)):
        values = kernel((np.arange(low, high) - centre + 0.5) * (1.0 / widen))
        total = np.cumsum(values)[-1]  # one by one, as Pillow adds
        fixed = values / total * (1 << PRECISION)
        weights[row, : high - low] = np.trunc(fixed + np.copysign(0.5, fixed))
    return lows, weights


def _bicubic(x: Float64) -> Float64:
    """Keys' cubic convolution with a = −1/2."""
    x = np.abs(x)
    near = (1.5 * x - 2.5) * x * x + 1
    far = (((x - 5) * x + 8) * x - 4) * -0.5
    values: Float64 = np.where(x < 1, near, np.where(x < 2, far, 0.0))
    return values


def _bilinear(x: Float64) -> Float64:
    values: Float64 = np.maximum(1 - np.abs(x), 0.0)
    return values


KERNELS: dict[str, tuple[Callable[[Float64], Float64], float]] = {
    "bicubic": (_bicubic, 2.0),
    "bilinear": (_bilinear, 1.0),
}
"""Each filter, and how far it reaches where pixels are one apart."""
