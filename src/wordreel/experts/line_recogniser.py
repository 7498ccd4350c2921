"""Read cropped lines of text with rapidocr's recognition network, each at its own width.

rapidocr itself takes six lines at a time and pads them to the widest, and to 320 pixels at least. Most lines
of a film are short: more than half of its arithmetic reads padding.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from wordreel.types import Float32

HEIGHT = 48  # pixels of a line, as the network was trained
STEP = 32  # widths are multiples of it, so that there are few, for which memory is planned once each

Image = NDArray[np.uint8]


class Lines(Protocol):
    """The used part of what rapidocr asks: BGR crops, one or several."""

    img: Image | list[Image]


class LineRecogniser:
    """Takes the place of rapidocr's own recogniser inside its engine."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._input = session.get_inputs()[0].name
        characters = session.get_modelmeta().custom_metadata_map["character"].splitlines()
        self._characters = ["", *characters, " "]  # the first stands for "no character here"

    def __call__(self, lines: Lines) -> Any:
        from rapidocr.ch_ppocr_rec import TextRecOutput

        began = time.perf_counter()
        crops = lines.img if isinstance(lines.img, list) else [lines.img]
        texts, scores = zip(*map(self._read, crops), strict=True)
        return TextRecOutput(crops, texts, scores, (None,) * len(crops), time.perf_counter() - began)

    def _read(self, crop: Image) -> tuple[str, float]:
        chances: Float32 = self._session.run(None, {self._input: prepared(crop)})[0][0]
        return spelled(chances, self._characters)


def prepared(crop: Image) -> Float32:
    """A BGR crop as the network takes it, `[1, 3, HEIGHT, width]` in [-1, 1], with zeros at its right end.

    >>> prepared(np.zeros((24, 50, 3), np.uint8)).shape
    (1, 3, 48, 128)
    """
    import cv2

    height, width = crop.shape[:2]
    width = max(1, -(-HEIGHT * width // height))
    line = np.zeros((1, 3, HEIGHT, -(-width // STEP) * STEP), np.float32)
    line[0, :, :, :width] = cv2.resize(crop, (width, HEIGHT)).transpose(2, 0, 1) / np.float32(127.5) - 1
    return line


def spelled(chances: Float32, characters: Sequence[str]) -> tuple[str, float]:
    """The text of `chances [steps, characters]` and the mean chance of its characters (CTC, greedy).

    A character that several steps in a row agree on counts once; the first of `characters` is the blank that
    separates two of a kind.

    >>> steps = np.eye(3, dtype=np.float32)[[1, 1, 0, 1, 2]]
    >>> spelled(steps, ["", "o", "k"])
    ('ook', 1.0)
    """
    best = chances.argmax(axis=1)
    new = np.append(True, best[1:] != best[:-1]) & (best != 0)
    if not new.any():
        return "", 0.0
    text = "".join(characters[which] for which in best[new])
    return text, float(chances[new, best[new]].mean())
