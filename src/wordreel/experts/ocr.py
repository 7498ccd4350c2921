"""What is written on screen: text read by PP-OCRv6 small, only when the picture changes."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

import numpy as np
from numpy.typing import NDArray

from wordreel.experts.base import Card, ExpertEntry, IncrementalExpert, fingerprint
from wordreel.experts.ocr_reader import HASHES, OcrReader, RapidOcrReader, TextLine
from wordreel.media.types import FrameNeed, Frames, Sound
from wordreel.runtime.store import WeightStore
from wordreel.types import Absent, Track, Words

CARD = Card(
    name="ocr", modality="ocr", title="On-screen text: titles, signs, subtitles, and when they stand",
    dim=1, need=FrameNeed(rate=0.5, short_side=480), licence="Apache-2.0", weights=(), version=4,
    span=240.0, note="PP-OCRv6 small inside rapidocr; a row for each line, with its confidence",
    also=frozenset({"2a53474edbabaa72"}),
)  # fmt: skip
QUICK_SIDE = 416  # pixels of the longer side: a fifth of the detection's cost, and small print is missed
MIN_SIMILARITY = 0.8  # of two readings of one line
GRID = (64, 36)  # cells across and down
WHOLE_EVERY = 8  # frames of footage without text, of which one is read as a whole
STILL = 6.0  # of 255: no cell of an unchanged picture differs by more, however noisy the compression


class OcrExpert(IncrementalExpert):
    """Recognise words on the screen by PP-OCR."""

    card = CARD

    def __init__(self, reader: OcrReader) -> None:
        self.fingerprint = fingerprint(CARD, *HASHES.values())
        self._read = reader

    def begin(self) -> OcrChunk:
        return OcrChunk(ChangeReader(self._read))

    def extract(self, media: Frames | Sound) -> Track | Absent:
        if not isinstance(media, Frames):
            raise TypeError("the ocr expert takes frames")
        return super().extract(media)


def load_quick(store: WeightStore) -> OcrExpert:
    """Load the expert of the quick pass.

    It looks for text in small frames, and reads only where there is any.
    """
    return OcrExpert(RapidOcrReader(QUICK_SIDE))


EXPERTS = {CARD.name: ExpertEntry(CARD, lambda store: OcrExpert(RapidOcrReader()), load_quick)}


class OcrChunk:
    """What is read in one chunk so far: the text of its frames, not the frames."""

    def __init__(self, read: ChangeReader) -> None:
        self._read = read
        self._texts: list[tuple[TextLine, ...]] = []
        self._times: list[float] = []
        self._period = 0.0

    def push(self, media: Frames) -> None:
        self._texts += [self._read(image) for image in media.images]
        self._times += media.times.tolist()
        self._period = media.period

    def finish(self) -> Track | Absent:
        lines = track_lines(self._texts, self._times, self._period)
        return Track.of_lines(lines) if lines else Absent("no text on screen")


class ChangeReader:
    """The text of each frame, read where it may have changed.

    A frame that looks like the last one read has the same text and is not read. After a frame without text,
    only the part of the next in which a cheap look sees text is read, and nothing if it sees none; one in
    `WHOLE_EVERY` is read as a whole all the same. So small print that first appears in footage without text
    is found up to seven readings late.
    """

    def __init__(self, reader: OcrReader) -> None:
        self._reader = reader
        self._last: NDArray[np.float32] | None = None
        self._text: tuple[TextLine, ...] = ()
        self._in_parts = 0  # readings since the last one of a whole frame

    def __call__(self, image: NDArray[np.uint8]) -> tuple[TextLine, ...]:
        small = thumbnail(image)
        if self._last is None or float(np.abs(small - self._last).max()) > STILL:
            first = self._last is None
            self._text = self._read(image, whole=first or bool(self._text))
            self._last = small
        return self._text

    def _read(self, image: NDArray[np.uint8], whole: bool) -> tuple[TextLine, ...]:
        if whole or self._in_parts == WHOLE_EVERY - 1:
            self._in_parts = 0
            return self._reader.read(image)
        self._in_parts += 1
        part = self._reader.likely(image)
        return () if part is None else self._reader.read(image, part)


def thumbnail(image: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Mean brightness in a coarse grid: a new line of text moves some cells, noise moves none."""
    import cv2

    luma = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
    cells: NDArray[np.float32] = cv2.resize(luma.astype(np.float32), GRID, interpolation=cv2.INTER_AREA)
    return cells


def is_same_line(one: str, other: str) -> bool:
    """Return whether two readings are of one line.

    Most characters agree, and every digit does.

    >>> is_same_line("Welcome to", "Welcometo"), is_same_line("lap 3 of 8", "lap 4 of 8")
    (True, False)
    """
    a, b = plain(one), plain(other)
    if [c for c in a if c.isdigit()] != [c for c in b if c.isdigit()]:
        return False
    return a == b or SequenceMatcher(None, a, b, autojunk=False).ratio() >= MIN_SIMILARITY


def plain(text: str) -> str:
    """Return letters and digits alone, without case: what two readings of a line should agree on."""
    return "".join(c for c in text.casefold() if c.isalnum())


def track_lines(frames: Sequence[tuple[TextLine, ...]], times: Sequence[float], period: float) -> list[Words]:
    """Return each line once for as long as it stays, in its best reading.

    A line of a frame continues the first line of the frame before that reads the same and is not yet
    taken. `frames[i]` is what is read at `times[i]` and stands until `times[i] + period`.
    """
    lines: list[list[tuple[TextLine, float]]] = []  # every line: its readings and their times
    visible: list[int] = []  # in the last frame: which lines, top to bottom
    for read, time in zip(frames, times, strict=True):
        waiting = visible
        now: list[int] = []
        for line in read:
            same = (i for i in waiting if is_same_line(lines[i][-1][0].text, line.text))
            which = next(same, None)
            if which is None:
                which = len(lines)
                lines.append([])
            else:
                waiting.remove(which)
            lines[which].append((line, time))
            now.append(which)
        visible = now
    return [_word(readings, period) for readings in lines]


def _word(readings: list[tuple[TextLine, float]], period: float) -> Words:
    best = max((line for line, _ in readings), key=lambda line: line.score)
    return Words(best.text, readings[0][1], readings[-1][1] + period, best.score)
