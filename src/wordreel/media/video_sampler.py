"""Sample a video stream at several rates and sizes in one pass; and the orientation of its frames.

Decoders return frames as stored; players rotate them, and so do we. An orientation is 0..7: quarter turns
counter-clockwise, plus 4 when mirrored left-right beforehand.
"""

from __future__ import annotations

import math
import struct
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordreel.errors import OverLimit
from wordreel.media.container import check_pixels
from wordreel.media.packets import StreamClock, decode_frames
from wordreel.media.types import FrameNeed, Limits

Emit = Callable[[int, int, int, Any], None]
"""Called with the need's number, the first sample's number, how many samples, and the RGB frame."""

MAX_ASPECT = 16
"""The longer side is at most this many times `short_side`: a strip of 1 x 60,000,000 pixels stays small."""


def scaled_size(width: int, height: int, short_side: int) -> tuple[int, int]:
    """Size with the shorter side at `short_side`, never larger than it was.

    >>> scaled_size(1920, 1080, 256), scaled_size(100, 51, 256), scaled_size(1081, 1921, 540)
    ((455, 256), (100, 51), (540, 960))
    """
    factor = min(1.0, short_side / min(width, height), MAX_ASPECT * short_side / max(width, height))
    return max(1, round(width * factor)), max(1, round(height * factor))


_PLANAR = {"nv12": "yuv420p", "p010le": "yuv420p10le"}
"""Formats in which devices return frames, and the format of the same pixels in software."""
_FULL_CHROMA = {
    "nv12": "yuv444p", "p010le": "yuv444p10le", "yuv420p": "yuv444p", "yuv420p10le": "yuv444p10le",
    "yuv422p": "yuv444p", "yuva420p": "yuva444p", "yuvj420p": "yuvj444p", "yuvj422p": "yuvj444p",
}  # fmt: skip
"""Formats with less chroma than light, and the one with as much."""
_FULL_CHROMA_BELOW = 3
"""How many times larger than the result a frame is from which on its chroma is fine enough as it is."""


class Scaler:
    """RGB copies of frames at one size, fixed by the first frame."""

    def __init__(self, need: FrameNeed) -> None:
        from av.video.reformatter import Interpolation, VideoReformatter

        self._need = need
        # Area averaging: each source pixel counts once, so fine patterns do not alias. The bicubic filter of
        # swscale widens as frames shrink, as Pillow's does.
        exact = Interpolation.ACCURATE_RND | Interpolation.FULL_CHR_H_INT
        self._how = Interpolation.BICUBIC | exact if need.accurate else Interpolation.AREA
        self._chroma = Interpolation.BILINEAR | Interpolation.ACCURATE_RND
        self._reformatter = VideoReformatter()
        self._planar = VideoReformatter()
        self._size: tuple[int, int] | None = None

    def size(self, frame: Any) -> tuple[int, int]:
        """Return the width and height of the frames that this returns.

        A stream whose size changes keeps the one it began with.
        """
        if self._size is None:
            self._size = scaled_size(frame.width, frame.height, self._need.short_side)
        return self._size

    def __call__(self, frame: Any) -> Any:
        """Return a frame in RGB at the size that is needed."""
        width, height = self.size(frame)
        planar = None
        if self._need.accurate and frame.height < _FULL_CHROMA_BELOW * height:
            # Libraries interpolate chroma linearly between its pixels; swscale does so only by itself.
            planar = _FULL_CHROMA.get(frame.format.name)
        elif (width, height) == (frame.width, frame.height):
            # Without a change of size the two formats are converted in different ways.
            planar = _PLANAR.get(frame.format.name)
        if planar is not None:
            frame = self._planar.reformat(frame, format=planar, interpolation=self._chroma, threads=1)
        return self._reformatter.reformat(
            frame, width, height, format="rgb24", interpolation=self._how, threads=1
        )


class VideoSampler:
    """Samples `start + k / rate` of a video: the frame on display then, the last with pts <= t."""

    def __init__(
        self,
        container: Any,
        stream: Any,
        needs: dict[int, FrameNeed],
        limits: Limits,
        emit: Emit,
        start: float = 0.0,
        stop: float = math.inf,
    ) -> None:
        check_pixels(stream.codec_context.width, stream.codec_context.height, limits)
        rate = stream.average_rate or stream.base_rate
        self.clock = StreamClock(
            container, stream, 1.0 / float(rate) if rate and float(rate) >= 0.1 else 0.04
        )
        self._limits = limits
        self._emit = emit
        self._needs = needs
        self._start = start
        self._stop = min(stop, limits.seconds)
        self._next = dict.fromkeys(needs, 0)
        self._queue: dict[int, deque[tuple[int, int, Any]]] = {index: deque() for index in needs}
        self._scalers: dict[tuple[int, bool], Scaler] = {}
        self._small: dict[tuple[int, int, bool], Any] = {}
        self._frames: Iterator[Any] = decode_frames(container, stream, self._displayed)
        self.done = False
        self.end = 0.0
        held = self._pull()
        self.has_media = held is not None
        self._ahead: Any = None
        self._ahead_time = 0.0
        if held is None:
            self.done = True
            return
        self._held: Any = held
        self.orientation = orientation(held, stream)
        if start > 0:
            self._seek(container, stream)
        self._advance()

    def _pull(self) -> Any | None:
        frame = next(self._frames, None)
        if frame is None:
            return None
        check_pixels(frame.width, frame.height, self._limits)
        self.end = self.clock.time(frame)
        self._duration = self.clock.duration(frame)
        if self.end > self._limits.seconds:
            raise OverLimit(
                f"a frame at {self.end:.0f} seconds is over the limit of {self._limits.seconds:.0f} seconds"
            )
        return frame

    def _displayed(self, stamp: int, until: int | None) -> bool:
        """Whether a sample falls on a frame displayed from one stamp to another."""
        first = self.clock.since(stamp)
        last = None if until is None else self.clock.since(until)
        if first is None or last is None:
            return True
        return any(self._count(need, last) > self._count(need, first) for need in self._needs.values())

    def _seek(self, container: Any, stream: Any) -> None:
        """Seek to the key frame at or before `start`; if that cannot be done, decode from the beginning."""
        import av

        if self._start < 2.0:
            return
        try:
            container.seek(self.clock.stamp(self._start), stream=stream, backward=True)
        except (av.FFmpegError, ValueError, OverflowError):
            return
        self.clock.jump()
        self._frames = decode_frames(container, stream, self._displayed)
        held = self._pull()
        if held is not None and self.end <= self._start:
            self._held = held
            return
        container.seek(self.clock.stamp(0.0), stream=stream, backward=True)
        self.clock.jump()
        self._frames = decode_frames(container, stream, self._displayed)
        self._held = self._pull() or self._held

    def _advance(self) -> None:
        """Decode one frame ahead. After the last one, its own length says when the video ends."""
        self._ahead = self._pull()
        if self._ahead is None:
            self.end = min(self.end + (self._duration or self.clock.step), self._limits.seconds)
        self._ahead_time = self.end

    def fill(self, until: float, window_end: float) -> None:
        """Emit all samples before `until`; those at or after `window_end` wait for `flush`."""
        while not self.done:
            self._emit_held(min(self._ahead_time, until, self._stop), window_end)
            if self._ahead_time >= self._stop:
                if until >= self._stop:
                    self.end = min(self.end, self._stop)
                    self.done = True
                return
            if self._ahead_time > until:
                return
            if self._ahead is None:
                self.done = True
                return
            self._held = self._ahead
            self._small.clear()
            self._advance()

    def _emit_held(self, before: float, window_end: float) -> None:
        """Emit the held frame for every sample before `before`, until which it is displayed."""
        for index, need in self._needs.items():
            first = self._next[index]
            beyond = max(first, self._count(need, before))
            if beyond == first:
                continue
            self._next[index] = beyond
            image = self._image(need)
            cut = min(beyond, max(first, self._count(need, window_end)))
            if cut > first:
                self._emit(index, first, cut - first, image)
            if beyond > cut:
                self._queue[index].append((cut, beyond - cut, image))

    def _count(self, need: FrameNeed, before: float) -> int:
        """How many samples lie before a time: the smallest k with `start + k / rate >= before`."""
        k = max(0, math.ceil((before - self._start) * need.rate) - 2)
        while self._start + k / need.rate < before:
            k += 1
        return k

    def _image(self, need: FrameNeed) -> Any:
        kind = need.short_side, need.accurate
        scaler = self._scalers.get(kind)
        if scaler is None:
            scaler = self._scalers[kind] = Scaler(need)
        # Needs that come out at the same size share one conversion: all that are larger than a small film.
        same = *scaler.size(self._held), need.accurate
        image = self._small.get(same)
        if image is None:
            image = self._small[same] = scaler(self._held)
        return image

    def flush(self, before: float) -> None:
        """Emit what `fill` held back, up to `before`."""
        for index, queue in self._queue.items():
            while queue:
                first, count, image = queue.popleft()
                cut = count
                if before < math.inf:
                    cut = min(count, max(0, self._count(self._needs[index], before) - first))
                if cut:
                    self._emit(index, first, cut, image)
                if cut < count:
                    queue.appendleft((first + cut, count - cut, image))
                    break


# An orientation is 0..7: quarter turns counter-clockwise, plus 4 when mirrored left-right beforehand.


def orientation(frame: Any, stream: Any) -> int:
    """Return the orientation in a frame's display matrix (from EXIF in photographs), 0 without one."""
    try:
        matrix = frame.side_data.get("DISPLAYMATRIX")
    except (ValueError, KeyError):
        # PyAV cannot list side data of kinds it does not know, EXIF among them; the angle is still available.
        return int(round(frame.rotation / 90) % 4)
    if matrix is None or len(matrix := bytes(matrix)) < 36:
        return 0
    a, b, _, c, d = struct.unpack("=5i", matrix[:20])
    # Rows of the matrix: x' = a x + c y, y' = b x + d y, with y pointing down.
    return _MATRICES.get((_sign(a), _sign(b), _sign(c), _sign(d)), 0)


def displayed_size(width: int, height: int, orientation: int) -> tuple[int, int]:
    """Return the displayed size of a frame stored as `width` x `height`."""
    return (height, width) if orientation % 2 else (width, height)


def upright(image: NDArray[np.uint8], orientation: int) -> NDArray[np.uint8]:
    """Return the image as displayed; `[h, w, 3]` in, the same pixels turned out."""
    if orientation & 4:
        image = image[:, ::-1]
    return np.rot90(image, orientation & 3)


def _sign(value: int) -> int:
    # A quarter turn has entries of 65536 or 0; anything slanted rounds to the nearest quarter.
    return (value > 32768) - (value < -32768)


_MATRICES = {
    (1, 0, 0, 1): 0,
    (0, -1, 1, 0): 1,
    (-1, 0, 0, -1): 2,
    (0, 1, -1, 0): 3,
    (-1, 0, 0, 1): 4,
    (0, 1, 1, 0): 5,
    (1, 0, 0, -1): 6,
    (0, -1, -1, 0): 7,
}
