"""Small real files for tests, written with PyAV: every frame says which one it is by its colour."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import av
import numpy as np

CODECS = {
    ".mp4": ("libx264", "aac"),
    ".mov": ("libx264", "aac"),
    ".mkv": ("libx264", "libopus"),
    ".webm": ("libvpx", "libopus"),
    ".avi": ("mpeg4", "libmp3lame"),
    ".mpg": ("mpeg2video", "mp2"),
    ".ts": ("mpeg2video", "mp2"),
    ".flv": ("flv", "libmp3lame"),
    ".gif": ("gif", None),
}
SOUND_CODECS = {
    ".wav": "pcm_s16le",
    ".mp3": "libmp3lame",
    ".flac": "flac",
    ".ogg": "libopus",
    ".m4a": "aac",
    ".aac": "aac",
    ".aiff": "pcm_s16be",
}
PICTURE_CODECS = {".png": "png", ".jpg": "mjpeg", ".webp": "libwebp", ".bmp": "bmp", ".tiff": "tiff"}
FORMATS = {".mpg": "mpeg", ".ts": "mpegts", ".aac": "adts", ".m4a": "ipod"}


def shade(index: int) -> int:
    """The grey of frame `index`: steps of 8 that come again after 24 frames."""
    return 30 + 8 * (index % 24)


def picture(index: int, width: int, height: int) -> np.ndarray:
    """A grey frame with its left quarter red, so that a turn can be seen."""
    image = np.full((height, width, 3), shade(index), np.uint8)
    image[:, : width // 4] = (200, 30, 30)
    return image


def video(
    path: Path,
    seconds: float = 2.0,
    rate: int = 10,
    size: tuple[int, int] = (64, 48),
    sound: bool = True,
    stamps: Sequence[float] | None = None,
    images: Sequence[np.ndarray] | None = None,
    options: dict[str, str] | None = None,
    codec: str | None = None,
    rotation: int = 0,
    sound_delay: float = 0.0,
) -> Path:
    """A video of `seconds`; `stamps` gives the frames' own times (variable rate), `images` their pixels."""
    names = CODECS[path.suffix]
    container = av.open(str(path), "w", format=FORMATS.get(path.suffix), options=options or {})
    stream = container.add_stream(codec or names[0], rate=rate)
    stream.width, stream.height = size
    if path.suffix == ".gif":
        stream.pix_fmt = "rgb8"
    elif size[0] % 2 or size[1] % 2:
        stream.pix_fmt = "yuv444p"
    else:
        stream.pix_fmt = "yuv420p"
    if rotation:
        stream.set_display_rotation(rotation)
    if stamps is not None:
        stream.time_base = stream.codec_context.time_base = Fraction(1, 1000)
    heard = None
    if sound and names[1]:
        heard = container.add_stream(
            names[1], rate=48000 if names[1] == "libopus" else 44100, layout="stereo"
        )
    count = (
        len(images) if images is not None else len(stamps) if stamps is not None else round(seconds * rate)
    )
    for index in range(count):
        pixels = images[index] if images is not None else picture(index, *size)
        frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
        frame = frame.reformat(format=stream.pix_fmt)
        if stamps is not None:
            frame.time_base, frame.pts = Fraction(1, 1000), round(1000 * stamps[index])
        else:
            frame.time_base, frame.pts = Fraction(1, rate), index
        container.mux(stream.encode(frame))
    container.mux(stream.encode(None))
    if heard is not None:
        _encode_tone(container, heard, seconds, sound_delay)
    container.close()
    return path


def tone(seconds: float, rate: int, hertz: float = 440.0) -> np.ndarray:
    """A sine that is silent in its second half."""
    times = np.arange(round(seconds * rate)) / rate
    wave = 0.5 * np.sin(2 * np.pi * hertz * times)
    wave[times >= seconds / 2] = 0
    return wave.astype(np.float32)


def _encode_tone(container, stream, seconds: float, delay: float = 0.0) -> None:
    rate = stream.codec_context.sample_rate
    wave = tone(seconds, rate)
    planes = stream.codec_context.layout.nb_channels
    step = stream.codec_context.frame_size or 1024
    resampler = av.AudioResampler(
        format=stream.codec_context.format, layout=stream.codec_context.layout, rate=rate, frame_size=step
    )
    for first in range(0, len(wave), 4096):
        piece = np.repeat(wave[None, first : first + 4096], planes, axis=0)
        frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(piece), "fltp", stream.codec_context.layout)
        frame.sample_rate, frame.time_base = rate, Fraction(1, rate)
        frame.pts = first + round(delay * rate)
        for part in resampler.resample(frame):
            container.mux(stream.encode(part))
    for part in resampler.resample(None):
        container.mux(stream.encode(part))
    container.mux(stream.encode(None))


def sound(path: Path, seconds: float = 2.0, rate: int = 48000, layout: str = "stereo") -> Path:
    """A sound file: a tone, then silence."""
    container = av.open(str(path), "w", format=FORMATS.get(path.suffix))
    stream = container.add_stream(SOUND_CODECS[path.suffix], rate=rate, layout=layout)
    _encode_tone(container, stream, seconds)
    container.close()
    return path


def still(path: Path, size: tuple[int, int] = (64, 48), image: np.ndarray | None = None) -> Path:
    """A picture file."""
    container = av.open(str(path), "w", format="gif" if path.suffix == ".gif" else "image2")
    stream = container.add_stream(PICTURE_CODECS.get(path.suffix, "gif"), rate=1)
    stream.width, stream.height = size
    stream.pix_fmt = {".jpg": "yuvj420p", ".webp": "yuv420p", ".bmp": "bgr24", ".gif": "rgb8"}.get(
        path.suffix, "rgb24"
    )
    pixels = picture(5, *size) if image is None else image
    frame = av.VideoFrame.from_ndarray(pixels, format="rgb24").reformat(format=stream.pix_fmt)
    frame.pts = 0
    container.mux(stream.encode(frame))
    container.mux(stream.encode(None))
    container.close()
    return path
