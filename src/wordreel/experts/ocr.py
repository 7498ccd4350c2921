"""What is written on screen: text read by PP-OCRv6 small, looked at only when the picture changes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wordreel.experts.base import Card, fingerprint
from wordreel.experts.ocr_lines import follow
from wordreel.experts.ocr_read import HASHES, Line, Reader, open_reader
from wordreel.experts.words import DIM, WEIGHTS, Embed, sentence_embedder
from wordreel.media.types import FrameNeed, Frames, Sound
from wordreel.types import Absent, Labels, Track
from wordreel.weights.store import WeightStore

CARD = Card(
    name="ocr",
    modality="ocr",
    title="On-screen text: titles, signs, subtitles, and when they stand",
    dim=DIM,
    need=FrameNeed(rate=0.5, short_side=480),
    licence="Apache-2.0",
    weights=(WEIGHTS,),
    span=240.0,
    note="PP-OCRv6 small inside rapidocr; sentences as all-MiniLM-L6-v2 embeddings",
)
GRID = (64, 36)  # cells across and down
STILL = 6.0  # of 255: no cell of an unchanged picture differs by more, however noisy the compression


class Ocr:
    card = CARD

    def __init__(self, reader: Reader, embed: Embed, name: str) -> None:
        self.fingerprint = name
        self._read = reader
        self._embed = embed

    def extract(self, media: Frames | Sound) -> Track | Absent:
        if not isinstance(media, Frames):
            raise TypeError("the ocr expert takes frames")
        words, stretches = follow(read_changes(self._read, media.images), media.times.tolist(), media.period)
        if not stretches:
            return Absent("no text on screen")
        values = self._embed([stretch.text for stretch in stretches])
        times = np.array([(stretch.start, stretch.end) for stretch in stretches], np.float64)
        return Track(values, times, tuple(words))

    def labels(self, track: Track) -> Labels | None:
        return None


def load(store: WeightStore) -> Ocr:
    name = fingerprint(CARD, *HASHES.values(), store.source_hash(WEIGHTS))
    return Ocr(open_reader(), sentence_embedder(store), name)


def read_changes(reader: Reader, images: NDArray[np.uint8]) -> list[tuple[Line, ...]]:
    """What each frame says; a frame that looks like the last one read says the same and is not read."""
    found: list[tuple[Line, ...]] = []
    seen: NDArray[np.float32] | None = None
    for image in images:
        look = glance(image)
        if seen is None or float(np.abs(look - seen).max()) > STILL:
            found.append(reader(image))
            seen = look
        else:
            found.append(found[-1])
    return found


def glance(image: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Mean brightness in a coarse grid: a new line of text moves some cells, noise moves none."""
    import cv2

    luma = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
    cells: NDArray[np.float32] = cv2.resize(luma.astype(np.float32), GRID, interpolation=cv2.INTER_AREA)
    return cells
