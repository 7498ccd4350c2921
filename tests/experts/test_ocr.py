"""On-screen text: drawn frames with known words, and the merging of lines over time."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest

from wordreel.errors import WeightsCorrupt
from wordreel.experts import ocr, ocr_reader, registry
from wordreel.experts.ocr import is_same_line, track_lines
from wordreel.experts.ocr_reader import WHOLE, Region, TextLine
from wordreel.media.types import Frames, Sound
from wordreel.runtime.store import WeightStore
from wordreel.types import Absent, Track, Words

Likely = Callable[[np.ndarray], Region | None] | None
GOLDEN = json.loads((Path(__file__).parent / "golden" / "ocr.json").read_text(encoding="utf-8"))


def picture(*lines: str, height: int = 256, width: int = 340) -> np.ndarray:
    """White letters on a slow gradient."""
    rows, columns = np.mgrid[:height, :width]
    image = np.stack([rows * 80 / height, columns * 80 / width, np.full_like(rows, 60)], -1).astype(np.uint8)
    for number, line in enumerate(lines):
        cv2.putText(image, line, (12, 60 + 60 * number), cv2.FONT_HERSHEY_SIMPLEX, 0.9, (255, 255, 255), 2)
    return image


def film(*images: np.ndarray, start: float = 0.0) -> Frames:
    return Frames(np.stack(images), start + 2.0 * np.arange(len(images), dtype=np.float64), 2.0)


@pytest.fixture(scope="module")
def expert() -> ocr.OcrExpert:
    loaded = registry.load("ocr", WeightStore())
    assert isinstance(loaded, ocr.OcrExpert)
    return loaded


@pytest.fixture(scope="module")
def drawn(expert: ocr.OcrExpert) -> Track:
    title = picture("HELLO WORLD", "platform 42")
    track = expert.extract(film(picture(), title, title, picture("GOODBYE"), start=10.0))
    assert isinstance(track, Track)
    return track


def test_golden(drawn: Track) -> None:
    found = [[word.text, word.start, word.end] for word in drawn.words]
    assert found == GOLDEN["words"]
    assert all(0.9 < word.score <= 1 for word in drawn.words)
    assert drawn.times.tolist() == [[word.start, word.end] for word in drawn.words]
    assert drawn.values.tolist() == [[pytest.approx(word.score)] for word in drawn.words]


def test_two_runs_are_equal(expert: ocr.OcrExpert, drawn: Track) -> None:
    title = picture("HELLO WORLD", "platform 42")
    again = expert.extract(film(picture(), title, title, picture("GOODBYE"), start=10.0))
    assert isinstance(again, Track)
    assert again.words == drawn.words
    np.testing.assert_array_equal(again.values, drawn.values)


def test_pieces_of_a_chunk_give_what_the_whole_gives(expert: ocr.OcrExpert, drawn: Track) -> None:
    title = picture("HELLO WORLD", "platform 42")
    whole = film(picture(), title, title, picture("GOODBYE"), start=10.0)
    chunk = expert.begin()
    for piece in (slice(0, 2), slice(2, 2), slice(2, 4)):
        chunk.push(Frames(whole.images[piece], whole.times[piece], whole.period))
    track = chunk.finish()
    assert isinstance(track, Track)
    assert track.words == drawn.words
    np.testing.assert_array_equal(track.values, drawn.values)
    np.testing.assert_array_equal(track.times, drawn.times)


@pytest.mark.parametrize(
    "image",
    [
        picture(),
        np.zeros((120, 160, 3), np.uint8),
        np.random.default_rng(0).integers(0, 256, (256, 340, 3), dtype=np.uint8),
        np.zeros((1, 1, 3), np.uint8),
        np.full((8, 2000, 3), 255, np.uint8),
    ],
    ids=["gradient", "black", "noise", "pixel", "sliver"],
)
def test_no_text(expert: ocr.OcrExpert, image: np.ndarray) -> None:
    assert expert.extract(film(image, image)) == Absent("no text on screen")


def test_wrong_media(expert: ocr.OcrExpert) -> None:
    with pytest.raises(TypeError, match="frames"):
        expert.extract(Sound(np.zeros(10, np.float32), 16000))


class Reader:
    """Reads with a function; `likely` says where text may be, and everywhere if it is not given."""

    def __init__(self, read: Callable[[np.ndarray], tuple[TextLine, ...]], likely: Likely = None) -> None:
        self._read, self._likely = read, likely
        self.parts: list[Region] = []

    def read(self, image: np.ndarray, part: Region = WHOLE) -> tuple[TextLine, ...]:
        self.parts.append(part)
        return self._read(image)

    def likely(self, image: np.ndarray) -> Region | None:
        return WHOLE if self._likely is None else self._likely(image)


def test_skipping_unchanged_frames_gives_what_reading_all_gives() -> None:
    noise = np.random.default_rng(1).integers(-2, 3, (6, 256, 340, 3))
    clean = np.stack([picture("ONE")] * 3 + [picture("TWO")] * 2 + [picture()])
    images = np.clip(clean.astype(int) + noise, 0, 255).astype(np.uint8)
    calls = []

    def reader(image: np.ndarray) -> tuple[TextLine, ...]:
        calls.append(image)
        nearest = int(np.argmin([np.abs(image.astype(int) - other).sum() for other in clean]))
        return (TextLine(f"picture {['one', 'two', 'none'][[0, 0, 0, 1, 1, 2][nearest]]}", 0.9),)

    every = [reader(image) for image in images]
    calls.clear()
    read = ocr.ChangeReader(Reader(reader))
    assert [read(image) for image in images] == every
    assert len(calls) == 3


def test_a_slow_fade_is_read_again() -> None:
    """Frames are compared with the last one read, so small steps add up."""
    images = np.stack([np.full((64, 64, 3), 4 * step, np.uint8) for step in range(10)])
    calls: list[int] = []

    def reader(image: np.ndarray) -> tuple[TextLine, ...]:
        calls.append(int(image[0, 0, 0]))
        return ()

    read = ocr.ChangeReader(Reader(reader))
    for image in images:
        read(image)
    assert calls == [0, 8, 16, 24, 32]


def test_after_a_frame_without_text_only_a_likely_part_is_read() -> None:
    """A cheap look that sees what there is gives what reading all gives, its slow twin."""
    title, part = (TextLine("a title", 0.9),), (0.2, 0.7, 0.6, 0.8)
    seen = [title, title, (), (), title, title, *[()] * 9]
    images = [np.full((64, 64, 3), 15 * number, np.uint8) for number in range(len(seen))]

    def lines(image: np.ndarray) -> tuple[TextLine, ...]:
        return seen[image[0, 0, 0] // 15]

    reader = Reader(lines, lambda image: part if lines(image) else None)
    read = ocr.ChangeReader(reader)
    assert [read(image) for image in images] == seen
    # After each text whole frames, then a part where there is text again, and the eighth without any.
    assert reader.parts == [WHOLE, WHOLE, WHOLE, part, WHOLE, WHOLE, WHOLE]


def test_nothing_is_read_where_nothing_is_likely() -> None:
    reader = Reader(lambda image: (), lambda image: None)
    read = ocr.ChangeReader(reader)
    for step in range(2 * ocr.WHOLE_EVERY):
        assert read(np.full((64, 64, 3), 15 * step, np.uint8)) == ()
    assert reader.parts == [WHOLE, WHOLE]


def test_a_part_is_read_as_in_the_whole_frame(expert: ocr.OcrExpert) -> None:
    image = picture("HELLO WORLD", "platform 42", height=480, width=640)
    reader = ocr_reader.RapidOcrReader()
    whole = reader.read(image)
    part = reader.likely(image)
    assert part is not None
    assert part != WHOLE
    found = reader.read(image, part)
    assert [line.text for line in found] == [line.text for line in whole] == ["HELLO WORLD", "platform 42"]
    assert ocr_reader.RapidOcrReader(ocr.QUICK_SIDE).likely(image) == WHOLE


def test_follow_merges_a_line_and_keeps_its_surest_reading() -> None:
    frames = [
        (TextLine("Welcometo", 0.8),),
        (TextLine("Welcome to", 0.9), TextLine("lap 1", 0.9)),
        (TextLine("Welcome to", 0.85), TextLine("lap 2", 0.9)),
        (),
        (TextLine("Welcome to", 0.95),),
    ]
    assert track_lines(frames, [0, 2, 4, 6, 8], 2.0) == [
        Words("Welcome to", 0, 6, 0.9),
        Words("lap 1", 2, 4, 0.9),
        Words("lap 2", 4, 6, 0.9),
        Words("Welcome to", 8, 10, 0.95),
    ]


def test_the_same_line_twice_in_a_frame_stays_two() -> None:
    twice = (TextLine("exit", 0.9), TextLine("exit", 0.8))
    expected = [Words("exit", 0, 4, 0.9), Words("exit", 0, 4, 0.8)]
    assert track_lines([twice, twice], [0, 2], 2.0) == expected


def test_same_line() -> None:
    assert is_same_line("CHANNEL nine", "channel-nine!")
    assert not is_same_line("00:01", "00:02")
    assert not is_same_line("red", "blue")


def test_junk_is_dropped() -> None:
    class Engine:
        txts = ("|", "a", "ok then", "unsure words", " two\n ")
        scores = (0.99, 0.99, 0.9, 0.5, 0.8)

        def __call__(self, image: np.ndarray) -> Engine:
            return self

    assert ocr_reader.read(Engine(), picture()) == (TextLine("ok then", 0.9), TextLine("two", 0.8))


def test_enlarging_is_bounded() -> None:
    def size(height: int, width: int) -> tuple[int, ...]:
        image = np.zeros((height, width, 3), np.uint8)
        return ocr_reader.enlarged(image, ocr_reader.magnification(image)).shape

    assert size(240, 320) == (480, 640, 3)
    assert size(100, 100) == (200, 200, 3)
    assert max(size(200, 1200)) <= 1280
    assert size(600, 800) == (600, 800, 3)


def test_another_network_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ocr_reader.HASHES, "PP-OCRv6_det_small.onnx", "0" * 64)
    with pytest.raises(WeightsCorrupt, match="pip install"):
        ocr_reader.checked_models()


def test_frames_are_scaled_as_rapidocr_does() -> None:
    from rapidocr.ch_ppocr_det.utils import DetPreProcess

    reader = ocr_reader.RapidOcrReader()
    image = np.random.default_rng(5).integers(0, 256, (200, 300, 3), dtype=np.uint8)
    plain = DetPreProcess(ocr_reader.LONG_SIDE, "max")(image)
    ours = reader._engine.text_det.get_preprocess()(image)
    assert ours.dtype == plain.dtype == np.float32
    np.testing.assert_allclose(ours, plain, atol=1e-6)
