"""Read the text of one frame with the detection and recognition networks inside rapidocr.

This file alone touches private parts of rapidocr, and `tests/experts/test_ocr.py` compares each with the
original: its own sessions would have no shared arena and spinning threads, its detector scales pictures in
double precision, and its recogniser takes six lines at a time, padded to the widest and to 320 pixels at
least. Most lines of a film are short: more than half of its arithmetic reads padding.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from wordreel.errors import NextStep, WeightsCorrupt
from wordreel.runtime.sessions import open_session
from wordreel.types import Float32
from wordreel.util.checksum import file_sha256

HASHES = {
    "PP-OCRv6_det_small.onnx": "090f04abcd9d9a7498bc4ebf677e4cb9bdce1fe4197ddb7e529f1ef44e1ff94f",
    "PP-OCRv6_rec_small.onnx": "6f327246b50388f3c176ae304bd95767ea6dc0c9ae92153ef8cbe210b3c14884",
}
SHORT_SIDE = 480  # small frames are read at this size: letters under 10 pixels are lost
LONG_SIDE = 1280
MIN_SIDE = 32  # pixels
MAX_ASPECT = 8.0  # longer side over shorter
LIKELY_SIDE = 320  # of the copy that is searched first: a sixth of the cost
MAX_LINES = 100
MIN_SCORE = 0.7

Image = NDArray[np.uint8]


Region = tuple[float, float, float, float]
"""Left, top, right and bottom, as shares of a frame's width and height."""

WHOLE: Region = (0.0, 0.0, 1.0, 1.0)
LIKELY = 0.1  # the detector's probability that calls for a closer look; it takes 0.3 for text
AROUND = 0.03  # ... and the one that still belongs to what is looked at
MARGIN = 16  # cells around it


@dataclass(frozen=True)
class TextLine:
    """One line of text and its confidence."""

    text: str
    score: float


class OcrReader(Protocol):
    """Reads RGB frames."""

    def read(self, image: Image, part: Region = WHOLE) -> tuple[TextLine, ...]:
        """Return the lines of a frame, or of a part of it, top to bottom."""
        ...

    def likely(self, image: Image) -> Region | None:
        """Return the part of a frame in which a cheap look sees text; None if it sees none."""
        ...


class RapidOcrReader:
    """PP-OCRv6 inside rapidocr. Nothing is ever downloaded.

    Text is detected in a copy of the frame whose longer side has at most `detection_side` pixels. The cheap
    look is the same detector on a small copy.
    """

    def __init__(self, detection_side: int = LONG_SIDE) -> None:
        from omegaconf import flag_override
        from rapidocr import RapidOCR

        self._detector, recogniser = map(open_session, checked_models())
        self._engine = RapidOCR(
            params={
                "Global.log_level": "critical",
                "Global.use_cls": False,  # upside-down text is rare, the check is not free
                "Det.limit_type": "max",
                "Det.limit_side_len": detection_side,
                "Det.max_candidates": MAX_LINES,
            }
        )
        settings = self._engine.cfg
        with flag_override(settings, "allow_objects", True):  # its own would have no arena, and threads spin
            settings.Det.session = self._detector
            settings.Det.engine_cfg = settings.EngineConfig.onnxruntime
            self._engine.text_det = _detector_type()(settings.Det)
        self._engine.text_rec = LineRecogniser(recogniser)
        self._cheap = detection_side <= 2 * LIKELY_SIDE  # already: a cheaper look would not pay

    def read(self, image: Image, part: Region = WHOLE) -> tuple[TextLine, ...]:
        return read(self._engine, image, part)

    def likely(self, image: Image) -> Region | None:
        if self._cheap:
            return WHOLE
        name = self._detector.get_inputs()[0].name
        return likely_region(self._detector.run(None, {name: small_copy(image)})[0][0, 0])


@cache
def _detector_type() -> type:
    """Return the detector of rapidocr with pictures in single precision: double takes 6 ms more.

    They are scaled to [-1, 1].
    """
    from rapidocr.ch_ppocr_det import TextDetector
    from rapidocr.ch_ppocr_det.utils import DetPreProcess

    class Preprocess(DetPreProcess):  # type: ignore[misc]
        def normalize(self, img: Image) -> NDArray[np.float32]:
            scaled: NDArray[np.float32] = img.astype(np.float32) / np.float32(127.5) - np.float32(1.0)
            return scaled

    class Detector(TextDetector):  # type: ignore[misc]
        def get_preprocess(self) -> Preprocess:
            return Preprocess(self.limit_side_len, self.limit_type)

    return Detector


def small_copy(image: Image) -> NDArray[np.float32]:
    """Return a frame of any size as the detector takes it, `[1, 3, h, w]` in [-1, 1], with few pixels."""
    import cv2

    height, width = image.shape[:2]
    factor = min(1.0, LIKELY_SIDE / max(height, width))
    size = [max(32, round(side * factor / 32) * 32) for side in (width, height)]
    small = cv2.resize(image, size, interpolation=cv2.INTER_AREA)[..., ::-1]
    return np.ascontiguousarray(small.transpose(2, 0, 1)[None] / np.float32(127.5) - np.float32(1.0))


def checked_models() -> list[Path]:
    """Return the two network files inside the installed rapidocr, checked by hash."""
    import rapidocr

    paths = []
    for name, expected in HASHES.items():
        path = Path(rapidocr.__file__).parent / "models" / name
        if not path.is_file() or file_sha256(path) != expected:
            raise WeightsCorrupt(
                f"rapidocr's {name} is not the file wordreel expects",
                NextStep("run `pip install --force-reinstall rapidocr==3.10.0`"),
            )
        paths.append(path)
    return paths


def read(engine: Any, image: Image, part: Region = WHOLE) -> tuple[TextLine, ...]:
    """Return lines of enough confidence and substance.

    None come from slivers, which no text fits in.
    """
    short, long = sorted(image.shape[:2])
    if short < MIN_SIDE or long > MAX_ASPECT * short:
        return ()
    left, top, right, bottom = pixels_of(part, image.shape[1], image.shape[0])
    piece = enlarged(image[top:bottom, left:right], magnification(image))
    result = engine(np.ascontiguousarray(piece[..., ::-1]))
    if not result.txts:
        return ()
    lines = (
        TextLine(clean_text(text), float(score))
        for text, score in zip(result.txts, result.scores, strict=True)
    )
    return tuple(line for line in lines if line.score >= MIN_SCORE and has_substance(line.text))


def magnification(image: Image) -> float:
    """Return how much larger a frame is read.

    Its shorter side gets `SHORT_SIDE` pixels; it is at most doubled.
    """
    short, long = sorted(image.shape[:2])
    return float(max(1.0, min(SHORT_SIDE / short, LONG_SIDE / long, 2.0)))


def enlarged(image: Image, scale: float) -> Image:
    """Enlarge a picture; one that need not be stays as it is."""
    import cv2

    if scale <= 1.0:
        return image
    bigger: Image = cv2.resize(image, None, fx=scale, fy=scale, interpolation=cv2.INTER_CUBIC)
    return bigger


def clean_text(text: str) -> str:
    r"""Leave only printable characters and single spaces.

    >>> clean_text(" EXIT   NOW\x07")
    'EXIT NOW'
    """
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def has_substance(text: str) -> bool:
    """Return whether there are at least two letters or digits.

    Single ones are mostly read into textures.

    >>> has_substance("GO!"), has_substance("- 1 -")
    (True, False)
    """
    return sum(c.isalnum() for c in text) >= 2


HEIGHT = 48  # pixels of a line, as the network was trained
STEP = 32  # widths are multiples of it, so that there are few, for which memory is planned once each


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
    """Return a BGR crop as the network takes it: `[1, 3, HEIGHT, width]` in [-1, 1], with zeros at its end.

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
    """Return the text of `chances [steps, characters]` and its mean chance (CTC, greedy).

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


def likely_region(chances: Float32) -> Region | None:
    """Return the part of a frame that may hold text, from the probability in each cell, `[rows, columns]`.

    >>> chances = np.zeros((100, 200), np.float32)
    >>> likely_region(chances) is None
    True
    >>> chances[50:60, 100:140] = 0.9
    >>> likely_region(chances)
    (0.42, 0.34, 0.78, 0.76)
    """
    if chances.max(initial=0.0) < LIKELY:
        return None
    rows, columns = np.nonzero(chances >= AROUND)
    height, width = chances.shape
    return (
        max(0, int(columns.min()) - MARGIN) / width,
        max(0, int(rows.min()) - MARGIN) / height,
        min(width, int(columns.max()) + 1 + MARGIN) / width,
        min(height, int(rows.max()) + 1 + MARGIN) / height,
    )


def pixels_of(region: Region, width: int, height: int) -> tuple[int, int, int, int]:
    """Return a region in pixels, at least one of them.

    >>> pixels_of((0.25, 0.0, 0.5, 1.0), 10, 4)
    (2, 0, 5, 4)
    """
    left, top = min(width - 1, int(region[0] * width)), min(height - 1, int(region[1] * height))
    right, bottom = math.ceil(region[2] * width), math.ceil(region[3] * height)
    return left, top, max(left + 1, min(right, width)), max(top + 1, min(bottom, height))
