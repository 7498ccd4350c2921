"""Pictures as the image towers take them: resized by Pillow, cropped as torchvision crops, normalised.

Resizing is done in two passes, columns before rows: Pillow alone begins with the rows of some tall pictures,
which rounds differently, and not in every version.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wordreel.backbones.config import ImageTransform
from wordreel.types import Float32

MAX_ASPECT = 32  # of longer pictures only the middle is resized; no more than that remains of any
Images = NDArray[np.uint8]


def transform_images(images: Images, transform: ImageTransform) -> Float32:
    """Turn `[n, h, w, 3]` bytes into `[n, 3, size, size]`: resize, crop, `(value / 255 − mean) / std`."""
    return normalize(resize_images(images, transform), transform)


def resize_images(images: Images, transform: ImageTransform) -> Images:
    """Resize `[n, h, w, 3]` to `[n, size, size, 3]`.

    >>> resize_images(np.zeros((2, 30, 50, 3), np.uint8), ImageTransform(size=20)).shape
    (2, 20, 20, 3)
    """
    from PIL import Image

    how = Image.Resampling[transform.interpolation.upper()]
    size, crops = transform.size, transform.resize == "crop"
    if crops:
        images = _middle(images, MAX_ASPECT * min(images.shape[1:3]))
    height, width = images.shape[1:3]
    short = min(height, width)
    new_height, new_width = (int(size * height / short), int(size * width / short)) if crops else (size, size)
    resized = np.empty((len(images), size, size, 3), np.uint8)
    for number, image in enumerate(images):
        picture = Image.fromarray(image).resize((new_width, height), how).resize((new_width, new_height), how)
        resized[number] = _middle(np.asarray(picture)[None], size)[0]
    return resized


def normalize(images: Images, transform: ImageTransform) -> Float32:
    """Turn `[n, size, size, 3]` bytes into `[n, 3, size, size]` floats: `(value / 255 − mean) / std`."""
    mean, std = (np.array(values, np.float32)[:, None, None] for values in (transform.mean, transform.std))
    pixels = np.ascontiguousarray(images.transpose(0, 3, 1, 2), np.float32)
    pixels /= np.float32(255)
    pixels -= mean
    pixels /= std
    return pixels


def _middle(images: Images, side: int) -> Images:
    """Return at most `side` rows and columns around the middle."""
    height, width = images.shape[1:3]
    # As torchvision crops: half to even where the margins differ.
    top, left = (max(0, round((length - side) / 2)) for length in (height, width))
    return images[:, top : top + side, left : left + side]
