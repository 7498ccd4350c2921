"""Read the text of one frame with the detection and recognition networks inside rapidocr."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordreel.errors import NextStep, WeightsCorrupt
from wordreel.nets.runtime import threads
from wordreel.weights.archive import file_sha256

HASHES = {
    "PP-OCRv6_det_small.onnx": "090f04abcd9d9a7498bc4ebf677e4cb9bdce1fe4197ddb7e529f1ef44e1ff94f",
    "PP-OCRv6_rec_small.onnx": "6f327246b50388f3c176ae304bd95767ea6dc0c9ae92153ef8cbe210b3c14884",
}
SHORT_SIDE = 480  # small frames are read at this size: letters under 10 pixels are lost
LONG_SIDE = 1280
MIN_SIDE = 32  # pixels
MAX_ASPECT = 8.0  # longer side over shorter
MAX_LINES = 100
MIN_SCORE = 0.7

Image = NDArray[np.uint8]


@dataclass(frozen=True)
class TextLine:
    """One line of text and its confidence."""

    text: str
    score: float


OcrReader = Callable[[Image], tuple[TextLine, ...]]


def open_reader(detection_side: int = LONG_SIDE) -> OcrReader:
    """A function from an RGB frame to its lines, top to bottom. Nothing is ever downloaded.

    Text is looked for in a copy of the frame whose longer side has at most `detection_side` pixels.
    """
    from rapidocr import RapidOCR

    detector, recogniser = (str(path) for path in checked_models())
    engine = RapidOCR(
        params={
            "Global.log_level": "critical",
            "Global.use_cls": False,  # upside-down text is rare, the check is not free
            "EngineConfig.onnxruntime.intra_op_num_threads": threads(),
            "Det.model_path": detector,
            "Det.limit_type": "max",
            "Det.limit_side_len": detection_side,
            "Det.max_candidates": MAX_LINES,
            "Rec.model_path": recogniser,
        }
    )
    return lambda image: read(engine, image)


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


def read(engine: Any, image: Image) -> tuple[TextLine, ...]:
    """Lines of enough confidence and substance; none from slivers, which no text fits in."""
    short, long = sorted(image.shape[:2])
    if short < MIN_SIDE or long > MAX_ASPECT * short:
        return ()
    result = engine(np.ascontiguousarray(enlarged(image)[..., ::-1]))
    if not result.txts:
        return ()
    lines = (
        TextLine(clean_text(text), float(score))
        for text, score in zip(result.txts, result.scores, strict=True)
    )
    return tuple(line for line in lines if line.score >= MIN_SCORE and has_substance(line.text))


def enlarged(image: Image) -> Image:
    """The frame with its shorter side at `SHORT_SIDE` where it is smaller, at most doubled."""
    import cv2

    short, long = sorted(image.shape[:2])
    scale = min(SHORT_SIDE / short, LONG_SIDE / long, 2.0)
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
