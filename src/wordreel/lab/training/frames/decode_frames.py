"""Decode the frames of a file that a model reads, as square uint8 pictures. Runs in loader workers: no torch.

The shorter side is resized to `size` (bicubic) and the centre is cropped, on the frames as displayed.

Which frames are read is CLIP4Clip's rule. The published loader reads a video second by second: `rate` frames
of each second at whole multiples of the frame rate, which it rounds down to an integer. Of more than `most`
frames it keeps the first, the last or evenly spaced ones (its `slice_framepos` 0, 1 and 2).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import av.video.codeccontext
import av.video.reformatter
import av.video.stream
import numpy as np
from numpy.typing import NDArray

from wordreel.errors import BrokenMedia
from wordreel.lab.training.settings import Position
from wordreel.media.container import check_pixels, open_container, video_stream
from wordreel.media.formats import open_media
from wordreel.media.packets import decode_frames
from wordreel.media.types import Limits
from wordreel.media.video_sampler import orientation, upright
from wordreel.types import Int64

Uint8 = NDArray[np.uint8]


@dataclass(frozen=True)
class FrameSpec:
    """What is read of every video: `rate` frames a second, at most `most`, `size` pixels square."""

    size: int
    most: int = 12
    rate: float = 1.0
    position: Position = "uniform"


def read_frames(path: Path, spec: FrameSpec, limits: Limits = Limits()) -> Uint8:  # noqa: B008 - frozen
    """Read `[n, size, size, 3]` of a video or a picture, at least one frame.

    Raises:
        MediaError: It is not media, is damaged, or exceeds the limits.
    """
    opened = open_media(path, limits)
    try:
        container = open_container(opened.descriptor, opened.size, opened.container, limits)
        try:
            return _read(container, spec, limits, opened.container.picture)
        finally:
            container.close()
    except (av.FFmpegError, ValueError) as error:
        raise BrokenMedia(f"decoding failed: {str(error)[:120].lower()}") from None
    finally:
        opened.close()


def _read(container: Any, spec: FrameSpec, limits: Limits, picture: bool) -> Uint8:
    stream = video_stream(container)
    if stream is None:
        raise BrokenMedia("it has no pictures")
    check_pixels(stream.codec_context.width, stream.codec_context.height, limits)
    stream.thread_type = "NONE"  # a worker for each core: more threads would only take turns
    wanted: set[int] | None = None
    if not picture:
        wanted = _wanted(container, stream, spec)
    squares: list[Uint8] = []
    square = _Square(spec.size)
    displayed = None if wanted is None else (lambda stamp, until: stamp in wanted)
    for number, frame in enumerate(decode_frames(container, stream, displayed)):
        check_pixels(frame.width, frame.height, limits)
        if wanted is not None and frame.pts not in wanted:
            continue
        squares.append(square(frame, stream))
        if wanted is not None and len(squares) == len(wanted):
            break
        if wanted is None and number + 1 == spec.most:
            break
    if not squares:
        raise BrokenMedia("truncated or damaged: no frame could be decoded")
    return np.stack(squares)


def _wanted(container: Any, stream: Any, spec: FrameSpec) -> set[int] | None:
    """Time stamps of the frames to read, from the packets alone; None where stamps do not tell frames apart.

    The file is rewound afterwards.
    """
    stamps = [packet.pts for packet in container.demux(stream) if packet.size and packet.pts is not None]
    if len(set(stamps)) < max(1, len(stamps)):
        stamps = []
    container.seek(0 if not stamps else min(stamps), stream=stream, backward=True)
    if not stamps:
        return None
    rate = float(stream.average_rate or stream.base_rate or 25)
    numbers = frame_numbers(len(stamps), rate, spec.rate, spec.most, spec.position)
    stamps.sort()
    return {stamps[number] for number in numbers.tolist()}


class _Square:
    """Resizes the shorter side and crops the centre, with one scaler for all frames of a file."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._scaler = av.video.reformatter.VideoReformatter()

    def __call__(self, frame: Any, stream: Any) -> Uint8:
        size, width, height = self._size, frame.width, frame.height
        if width <= height:
            width, height = size, max(size, int(size * height / width))
        else:
            width, height = max(size, int(size * width / height)), size
        small = self._scaler.reformat(
            frame, width, height, format="rgb24", interpolation="BICUBIC", threads=1
        )
        image = small.to_ndarray()
        top, left = round((height - size) / 2), round((width - size) / 2)
        return upright(image[top : top + size, left : left + size], orientation(frame, stream))


def candidates(frames: int, frame_rate: float, rate: float) -> Int64:
    """Return the numbers of the frames at `rate` per second of a video of `frames` frames.

    A rate of 5/2 takes every second one of 5 frames a second, as CLIP2Video's `feature_framerate` 2 does.

    >>> candidates(70, 29.97, 1).tolist()
    [0, 29, 58]
    >>> candidates(30, 10.0, 2).tolist()
    [0, 5, 10, 15, 20, 25]
    >>> candidates(30, 10.0, 2.5).tolist()
    [0, 4, 8, 12, 16, 20, 24, 28]
    """
    extracted, every = Fraction(rate).limit_denominator(100).as_integer_ratio()
    whole = max(1, int(frame_rate))
    within = np.arange(0, whole, max(1, whole // extracted))[:extracted]
    numbers = (np.arange(0, frames, whole)[:, None] + within).reshape(-1)
    return numbers[numbers < frames].astype(np.int64)[::every]


def choose(count: int, most: int, position: Position) -> Int64:
    """Return which of `count` candidates are read when at most `most` may be.

    >>> choose(7, 3, "uniform").tolist(), choose(7, 3, "first").tolist(), choose(7, 3, "last").tolist()
    ([0, 3, 6], [0, 1, 2], [4, 5, 6])
    """
    if count <= most:
        return np.arange(count)
    if position == "first":
        return np.arange(most)
    if position == "last":
        return np.arange(count - most, count)
    return np.linspace(0, count - 1, num=most, dtype=np.int64)


def frame_numbers(frames: int, frame_rate: float, rate: float, most: int, position: Position) -> Int64:
    """Return the numbers of the frames that a model reads, in order."""
    found = candidates(frames, frame_rate, rate)
    return found[choose(len(found), most, position)]
