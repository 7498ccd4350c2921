"""Lines read at their own width, and the text that comes out of chances."""

from __future__ import annotations

from types import SimpleNamespace

import cv2
import numpy as np
import pytest

from wordreel.experts.ocr_reader import HEIGHT, STEP, LineRecogniser, checked_models, prepared, spelled
from wordreel.runtime.sessions import open_session


def crop(text: str, height: int = 32) -> np.ndarray:
    """White letters on a dark background, BGR."""
    scale = height / 40
    (width, _), _ = cv2.getTextSize(text, cv2.FONT_HERSHEY_SIMPLEX, scale, 2)
    image = np.full((height, width + 12, 3), 30, np.uint8)
    cv2.putText(image, text, (6, round(height * 0.72)), cv2.FONT_HERSHEY_SIMPLEX, scale, (255, 255, 255), 2)
    return image


@pytest.fixture(scope="module")
def recogniser() -> LineRecogniser:
    return LineRecogniser(open_session(checked_models()[1]))


def test_lines_are_read_in_order(recogniser: LineRecogniser) -> None:
    texts = ["EXIT", "platform 42 to the harbour", "SOLD OUT"]
    crops = [crop(text) for text in texts]
    found = recogniser(SimpleNamespace(img=crops))
    assert list(found.txts) == texts
    assert found.imgs is crops
    assert all(0.8 < score <= 1.0 for score in found.scores)
    alone = recogniser(SimpleNamespace(img=crops[1]))
    assert (alone.txts, alone.scores) == (found.txts[1:2], found.scores[1:2])


def test_a_line_gets_its_own_width() -> None:
    for width in (1, 20, 300):
        image = np.random.default_rng(width).integers(0, 256, (24, width, 3), dtype=np.uint8)
        line = prepared(image)
        wanted = 2 * width
        assert line.shape == (1, 3, HEIGHT, -(-wanted // STEP) * STEP)
        assert not line[..., wanted:].any()
        plain = cv2.resize(image, (wanted, HEIGHT)).astype(np.float32) / 255
        np.testing.assert_allclose(line[0, :, :, :wanted], (plain.transpose(2, 0, 1) - 0.5) / 0.5, atol=1e-6)


def test_spelling_equals_its_slow_twin() -> None:
    characters = ["", *"abcd"]
    rng = np.random.default_rng(0)
    for _ in range(50):
        chances = rng.dirichlet(np.ones(len(characters)), 12).astype(np.float32)
        text, kept, before = "", [], -1
        for step in chances:
            best = int(step.argmax())
            if best not in (0, before):
                text += characters[best]
                kept.append(float(step[best]))
            before = best
        got, score = spelled(chances, characters)
        assert got == text
        assert score == pytest.approx(np.mean(kept) if kept else 0.0, rel=1e-5)
