"""Write small films: slow zooms into pictures, title cards, and sound."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Picture = NDArray[np.uint8]  # [height, width, 3] RGB

WIDTH, HEIGHT, RATE = 640, 360, 10


def write_film(
    path: Path, frames: Iterable[Picture], sound: tuple[NDArray[np.float32], int] | None = None
) -> None:
    """Write `frames` at 10 a second, all 640 × 360, with mono `sound` (samples, rate) if given."""
    import av

    with av.open(str(path), "w") as film:
        video = film.add_stream("libx264", rate=RATE, options={"crf": "20", "preset": "veryfast"})
        video.width, video.height, video.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        audio = film.add_stream("aac", rate=sound[1]) if sound else None
        for picture in frames:
            film.mux(video.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        film.mux(video.encode(None))
        if sound and audio:
            samples, rate = sound
            for start in range(0, len(samples), 1024):
                block = np.ascontiguousarray(samples[None, start : start + 1024], np.float32)
                frame = av.AudioFrame.from_ndarray(block, format="fltp", layout="mono")
                frame.sample_rate, frame.pts, frame.time_base = rate, start, Fraction(1, rate)
                film.mux(audio.encode(frame))
            film.mux(audio.encode(None))


def read_picture(path: Path) -> Picture:
    """Read a sample picture as RGB."""
    from wordreel import media

    picture: Picture = media.frames(path, short_side=2048).images[0]
    return picture


def drift(picture: Picture, seconds: float) -> Iterator[Picture]:
    """Push slowly into a picture, the way documentaries show photographs."""
    import cv2

    count = round(seconds * RATE)
    height, width = picture.shape[:2]
    scale = min(width / WIDTH, height / HEIGHT)
    for step in range(count):
        zoom = scale * (1 - 0.12 * step / max(1, count - 1))
        w, h = int(WIDTH * zoom), int(HEIGHT * zoom)
        x, y = (width - w) // 2, (height - h) // 2
        cut = picture[y : y + h, x : x + w]
        yield np.asarray(cv2.resize(cut, (WIDTH, HEIGHT), interpolation=cv2.INTER_AREA), np.uint8)


def title_card(lines: list[str], seconds: float, colour: tuple[int, int, int]) -> Iterator[Picture]:
    """Yield the frames of a coloured card with white words."""
    import cv2

    card = np.full((HEIGHT, WIDTH, 3), colour, np.uint8)
    for number, line in enumerate(lines):
        (width, _), _ = cv2.getTextSize(line, cv2.FONT_HERSHEY_DUPLEX, 1.2, 2)
        at = ((WIDTH - width) // 2, HEIGHT // 2 + 56 * number - 28 * (len(lines) - 1) + 14)
        cv2.putText(card, line, at, cv2.FONT_HERSHEY_DUPLEX, 1.2, (255, 255, 255), 2, cv2.LINE_AA)
    for _ in range(round(seconds * RATE)):
        yield card
