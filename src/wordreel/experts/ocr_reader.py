"""Read the text of one frame with the detection and recognition networks inside rapidocr."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from wordreel.errors import NextStep, WeightsCorrupt
from wordreel.experts.line_recogniser import LineRecogniser
from wordreel.experts.text_regions import WHOLE, Region, likely_region, pixels_of
from wordreel.runtime.sessions import open_session
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


@dataclass(frozen=True)
class TextLine:
    """One line of text and its confidence."""

    text: str
    score: float


class OcrReader(Protocol):
    """Reads RGB frames."""

    def read(self, image: Image, part: Region = WHOLE) -> tuple[TextLine, ...]:
        """The lines of a frame, or of a part of it, top to bottom."""
        ...

    def likely(self, image: Image) -> Region | None:
        """The part of a frame in which a cheap look sees text; None if it sees none."""
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
    """rapidocr's detector with pictures scaled to [-1, 1] in single precision: double takes 6 ms more."""
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
    """A frame of any size as the detector takes it, `[1, 3, h, w]` in [-1, 1], with few pixels."""
    import cv2

    height, width = image.shape[:2]
    factor = min(1.0, LIKELY_SIDE / max(height, width))
    size = [max(32, round(side * factor / 32) * 32) for side in (width, height)]
    small = cv2.resize(image, size, interpolation=cv2.INTER_AREA)[..., ::-1]
    return np.ascontiguousarray(small.transpose(2, 0, 1)[None] / np.float32(127.5) - np.float32(1.0))


def checked_models() -> list[Path]:
    """The two network files inside the installed rapidocr, checked by hash."""
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
    """Lines of enough confidence and substance; none from slivers, which no text fits in."""
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
    """How much larger a frame is read: its shorter side gets `SHORT_SIDE` pixels; at most doubled."""
    short, long = sorted(image.shape[:2])
    return float(max(1.0, min(SHORT_SIDE / short, LONG_SIDE / long, 2.0)))


def enlarged(image: Image, scale: float) -> Image:
    import cv2

    if scale <= 1.0:
        return image
    bigger: Image = cv2.resize(image, None, fx=scale, fy=scale, interpolation=cv2.INTER_CUBIC)
    return bigger


def clean_text(text: str) -> str:
    """Printable characters only, single spaces.

    >>> clean_text(" EXIT   NOW\\x07")
    'EXIT NOW'
    """
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def has_substance(text: str) -> bool:
    """Two letters or digits at least: single ones are mostly read into textures.

    >>> has_substance("GO!"), has_substance("- 1 -")
    (True, False)
    """
    return sum(c.isalnum() for c in text) >= 2
