"""Assemble long footage from short clips, scaled up and with their sound, for `add.py` and `quick_add.py`."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np

RATE = 25  # frames a second
SOUND = 48_000  # samples a second
ENCODERS = {"h264": ("libx264", "veryfast"), "hevc": ("libx265", "ultrafast")}


def assemble(clips: list[Path], path: Path, seconds: float, height: int, codec: str) -> Path:
    """Write the first clips one after the other, frames blended to 25 a second, until `seconds` are full."""
    width, (encoder, preset) = height * 16 // 9, ENCODERS[codec]
    part = path.with_suffix(".part.mp4")
    with av.open(str(part), "w") as film:
        video = film.add_stream(encoder, rate=RATE, options={"preset": preset, "crf": "21"})
        video.width, video.height, video.pix_fmt = width, height, "yuv420p"
        sound = film.add_stream("aac", rate=SOUND, layout="mono")
        queue, written, heard = av.AudioFifo(), 0, 0
        for clip in clips:
            images, rate = read_frames(clip)
            count = min(int(len(images) / rate * RATE), round(seconds * RATE) - written)
            for image in blended(images, rate, count, (width, height)):
                frame = av.VideoFrame.from_ndarray(image, format="rgb24")
                frame.pts, frame.time_base = written, Fraction(1, RATE)
                film.mux(video.encode(frame))
                written += 1
            samples = read_sound(clip, count * SOUND // RATE)
            piece = av.AudioFrame.from_ndarray(samples[None], format="fltp", layout="mono")
            piece.sample_rate = SOUND
            queue.write(piece)
            while (full := queue.read(1024)) is not None:
                full.pts, full.time_base = heard, Fraction(1, SOUND)
                heard += 1024
                film.mux(sound.encode(full))
            if written >= seconds * RATE:
                break
        film.mux(video.encode(None))
        film.mux(sound.encode(None))
    part.rename(path)
    return path


def read_frames(clip: Path) -> tuple[list[Any], float]:
    """All frames of a clip and how many there are a second."""
    with av.open(str(clip)) as opened:
        stream = opened.streams.video[0]
        return [f.to_ndarray(format="rgb24") for f in opened.decode(stream)], float(
            stream.average_rate or RATE
        )


def read_sound(clip: Path, count: int) -> Any:
    """`count` samples of a clip, with silence where it has none."""
    resampler = av.AudioResampler(format="fltp", layout="mono", rate=SOUND)
    pieces = [np.zeros(0, np.float32)]
    with av.open(str(clip)) as opened:
        if opened.streams.audio:
            for frame in opened.decode(audio=0):
                pieces += [piece.to_ndarray()[0] for piece in resampler.resample(frame)]
    samples = np.concatenate(pieces)[:count]
    return np.ascontiguousarray(np.pad(samples, (0, count - len(samples))), np.float32)


def blended(images: list[Any], rate: float, count: int, size: tuple[int, int]) -> Iterator[Any]:
    """`count` frames at `RATE` a second: between two frames of the clip, a mixture of both."""
    last, before, after = -1, images[0], images[0]
    for number in range(count):
        at = number / RATE * rate
        which = min(int(at), len(images) - 1)
        if which != last:
            before, after = (
                cv2.resize(images[min(which + k, len(images) - 1)], size, interpolation=cv2.INTER_CUBIC)
                for k in (0, 1)
            )
            last = which
        share = min(1.0, at - which)
        yield cv2.addWeighted(before, 1 - share, after, share, 0)
