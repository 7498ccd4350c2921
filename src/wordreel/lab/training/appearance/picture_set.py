"""Captioned pictures in memory, encoded as WebP, with the sentence vectors of their captions."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordreel.errors import NextStep, TrainingError
from wordreel.lab.training.data.pairs import Pairs
from wordreel.types import Bool, Float32, Int64

Uint8 = NDArray[np.uint8]
QUALITY = 80


@dataclass(frozen=True, eq=False)
class PictureSet:
    """Pictures, and videos as some of their frames.

    `counts [items]` are the pictures of each item of `pairs`, `lengths [pictures]` the bytes of each picture,
    which lie one after the other in `content`; `sentences [captions, 384]` are the captions' unit vectors.
    `names` are those of the sources.
    """

    pairs: Pairs
    names: tuple[str, ...]
    counts: Int64
    lengths: Int64
    content: Uint8
    sentences: Float32

    def __post_init__(self) -> None:
        whole = int(self.counts.sum()) == len(self.lengths) and int(self.lengths.sum()) == len(self.content)
        fitting = len(self.counts) == len(self.pairs) and len(self.sentences) == self.pairs.counts.sum()
        if not whole or not fitting or (self.counts < 1).any():
            raise TrainingError(
                f"{self.pairs.name}: the pictures and captions are not of the same items",
                NextStep("pack them again", "train appearance … --pack FILE"),
            )

    def __len__(self) -> int:
        return len(self.pairs)

    @cached_property
    def firsts(self) -> Int64:
        """`[items]`: the number of each item's first picture."""
        return np.cumsum(self.counts) - self.counts

    @cached_property
    def fingerprint(self) -> str:
        """Changes with the captions and the pictures."""
        digest = hashlib.sha256(self.pairs.fingerprint.encode())
        for array in (self.counts, self.lengths, self.content):
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()[:16]

    def decode(self, size: int) -> Uint8:
        """`[pictures, size, size, 3]` RGB."""
        ends = np.cumsum(self.lengths)
        pictures = np.empty((len(self.lengths), size, size, 3), np.uint8)

        def one(number: int) -> None:
            start = int(ends[number] - self.lengths[number])
            pictures[number] = decode_picture(self.content[start : int(ends[number])], size)

        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            for _ in pool.map(one, range(len(pictures))):
                pass
        return pictures

    def take(self, mask: Bool) -> PictureSet:
        """Only some items, `mask [items]`."""
        pictures = np.repeat(mask, self.counts)
        ids = [name for name, keep in zip(self.pairs.ids, mask, strict=True) if keep]
        captions = tuple(some for some, keep in zip(self.pairs.captions, mask, strict=True) if keep)
        return replace(
            self,
            pairs=replace(self.pairs, ids=tuple(ids), captions=captions, source=self.pairs.source[mask]),
            counts=self.counts[mask],
            lengths=self.lengths[pictures],
            content=self.content[np.repeat(pictures, self.lengths)],
            sentences=self.sentences[np.repeat(mask, self.pairs.counts)],
        )


@dataclass(frozen=True)
class AppearanceData:
    """What the appearance network trains on. `start` are the network's weights by their published names."""

    train: PictureSet
    val: PictureSet | None
    start: Mapping[str, NDArray[Any]]


def held_out(ids: tuple[str, ...], share: float) -> Bool:
    """`[items]`: a share of the items, chosen by their ids alone, whatever else there is.

    >>> held_out(("a", "b", "c"), 1.0).tolist()
    [True, True, True]
    """
    parts = [int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") / 2**64 for name in ids]
    return np.array(parts, np.float64) < share


def encode_picture(picture: Uint8) -> Uint8:
    """`[h, w, 3]` RGB as the bytes of a WebP file."""
    import cv2

    bgr = np.ascontiguousarray(picture[..., ::-1])
    return np.asarray(cv2.imencode(".webp", bgr, [cv2.IMWRITE_WEBP_QUALITY, QUALITY])[1], np.uint8).ravel()


def decode_picture(content: Uint8, size: int) -> Uint8:
    """`[size, size, 3]` RGB, by OpenCV or, on a machine that has only that, Pillow."""
    try:
        import cv2
    except ImportError:
        return _by_pillow(content, size)
    found = cv2.imdecode(content, cv2.IMREAD_COLOR)
    if found is None or found.shape != (size, size, 3):
        raise _unreadable(size)
    return np.asarray(found[..., ::-1], np.uint8)


def _by_pillow(content: Uint8, size: int) -> Uint8:
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(content.tobytes()), formats=["WEBP"]) as image:
            found = np.asarray(image.convert("RGB")) if image.size == (size, size) else None
    except (UnidentifiedImageError, OSError):
        found = None
    if found is None:
        raise _unreadable(size)
    return found


def _unreadable(size: int) -> TrainingError:
    return TrainingError(
        f"the pack has a picture that is damaged or not of {size} pixels",
        NextStep("pack them again with the same model.size", "train appearance … --pack FILE"),
    )
