"""The networks of joint picture-text models, run as they are published, and the heads of fine-tuned ones.

Pictures are resized by Pillow, cropped as torchvision crops, and normalised. Resizing is done in two passes,
columns before rows: Pillow alone begins with the rows of some tall pictures, which rounds differently, and
not in every version.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordreel.backbones.config import HeadConfig, ImageTransform
from wordreel.errors import WeightsError
from wordreel.runtime.sessions import Network, in_batches, open_session
from wordreel.types import Bool, Float32, Int64

EMBEDDINGS = ("image_embeds", "text_embeds", "embedding", "pooler_output")
"""Outputs that hold the embedding, the best first; else it is the only one of a vector for each item."""
TYPES = {
    "tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(int64)": np.int64,
    "tensor(int32)": np.int32, "tensor(bool)": np.bool_,
}  # fmt: skip
MASK = "attention_mask"
BATCH = 16


class Tower:
    """A loaded network: its inputs and outputs are found by their names and shapes."""

    def __init__(self, path: Path) -> None:
        try:
            self._session = open_session(path)
        except Exception as error:  # onnxruntime's errors share no class
            raise WeightsError(f"{path.name} is not a network that can be run: {str(error)[:200]}") from None
        inputs = {one.name: one for one in self._session.get_inputs()}
        self._types = {name: TYPES.get(one.type) for name, one in inputs.items()}
        mains = [one for name, one in inputs.items() if name != MASK]
        if len(mains) != 1 or None in self._types.values():
            raise WeightsError(f"{path.name} has the inputs {', '.join(inputs)}, which are not known")
        self._main = mains[0]
        outputs = {one.name: one for one in self._session.get_outputs()}
        vectors = [name for name, one in outputs.items() if one.shape is not None and len(one.shape) == 2]
        known = [name for name in EMBEDDINGS if name in outputs] or vectors
        if not known:
            raise WeightsError(f"{path.name} has the outputs {', '.join(outputs)}, none of them an embedding")
        self._output = known[0]

    @property
    def masked(self) -> bool:
        """Whether it is told which tokens are padding."""
        return MASK in self._types

    @property
    def length(self) -> int | None:
        """How many tokens it takes; None if any number."""
        return _fixed(self._main.shape, 1)

    def pictures(self, pixels: Float32) -> Float32:
        """Return embeddings of `[n, 3, size, size]`."""
        return self._run({self._main.name: pixels})

    def texts(self, ids: Int64, mask: Bool) -> Float32:
        """Return embeddings of token ids `[n, length]`."""
        return self._run({self._main.name: ids, MASK: mask} if self.masked else {self._main.name: ids})

    def _run(self, inputs: dict[str, NDArray[Any]]) -> Float32:
        """Run in batches; a graph for a fixed number of items gets its last ones repeated."""
        count, fixed = len(inputs[self._main.name]), _fixed(self._main.shape, 0)
        step = fixed or BATCH
        parts = []
        for start in range(0, count, step):
            rows = np.arange(start, start + step if fixed else min(count, start + step)).clip(max=count - 1)
            given = {
                name: value[rows].astype(self._types[name], copy=False) for name, value in inputs.items()
            }
            (part,) = self._session.run([self._output], given)
            parts.append(part[: count - start])
        return np.concatenate(parts).astype(np.float32, copy=False)


def _fixed(shape: Any, axis: int) -> int | None:
    """Return the size of an axis; None where a graph takes any."""
    size = shape[axis] if shape is not None and len(shape) > axis else None
    return size if isinstance(size, int) and size > 0 else None


HEAD_BATCH = 64  # clips
MIN_FRAMES = 3  # frames of a batch: CLIP2Video's head needs differences of every second one


def uniform_rows(count: int, most: int) -> list[int]:
    """Return evenly spaced rows of `count`, the first and the last among them: all where they are few.

    >>> uniform_rows(100, 4)
    [0, 33, 66, 99]
    """
    return [int(row) for row in np.linspace(0, count - 1, min(count, most))]


class FrameHead:
    """A graph from `frames [n, count, dim]` and which of them exist, `mask`, to `vectors`."""

    def __init__(self, config: HeadConfig, path: Path) -> None:
        self._config = config
        self._network = Network(path)

    def __call__(self, clips: Sequence[Float32]) -> Float32:
        """Return one unit vector for the frame embeddings `[n, dim]` of each clip, in order of time."""
        return in_batches(self._batch, clips, HEAD_BATCH)

    def _batch(self, clips: Sequence[Float32]) -> Float32:
        chosen = [clip[uniform_rows(len(clip), self._config.frames)] for clip in clips]
        frames = np.zeros((len(chosen), max(MIN_FRAMES, *map(len, chosen)), chosen[0].shape[1]), np.float32)
        mask = np.zeros(frames.shape[:2], bool)
        for number, rows in enumerate(chosen):
            frames[number, : len(rows)], mask[number, : len(rows)] = rows, True
        return self._network(frames=frames, mask=mask)["vectors"]


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
