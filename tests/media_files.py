"""Small real videos."""

from fractions import Fraction
from pathlib import Path

import av
import numpy as np


def video(path: Path, seconds: float = 3.0, rate: int = 10, sound: bool = True, seed: int = 0) -> Path:
    """A film whose colour changes every second, with a tone."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed + int(seconds * 1000))
    with av.open(str(path), "w") as out:
        picture = out.add_stream("mpeg4", rate=rate)
        picture.width, picture.height, picture.pix_fmt = 64, 48, "yuv420p"
        tone = out.add_stream("aac", rate=16000) if sound else None
        for n in range(round(seconds * rate)):
            if n % rate == 0:
                colour = rng.integers(0, 255, 3)
            frame = av.VideoFrame.from_ndarray(np.full((48, 64, 3), colour, np.uint8), format="rgb24")
            frame.pts, frame.time_base = n, Fraction(1, rate)
            out.mux(picture.encode(frame))
        out.mux(picture.encode())
        if tone is not None:
            wave = np.sin(np.arange(round(seconds * 16000)) * 0.05).astype(np.float32)[None]
            for at in range(0, wave.shape[1], 1024):
                sample = av.AudioFrame.from_ndarray(wave[:, at : at + 1024], format="fltp", layout="mono")
                sample.sample_rate, sample.pts, sample.time_base = 16000, at, Fraction(1, 16000)
                out.mux(tone.encode(sample))
            out.mux(tone.encode())
    return path
