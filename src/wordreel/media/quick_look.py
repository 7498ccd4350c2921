"""Key frames of a video, each decoded alone: a quick look at a file. Runs in the worker.

All packets are read and only some are decoded, so no index is needed and nothing is sought. A key frame comes
at most every `1 / rate` seconds. Encoders choose how far apart they are: a second on phones, ten in films.
Where there are more than `SPARSE` steps between two, the frames between are decoded as well if that is cheap:
small pictures, or few of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from wordreel.errors import OverLimit
from wordreel.media.container import audio_stream, check_pixels, video_stream
from wordreel.media.decode import Heartbeat, Send, send_image
from wordreel.media.decode_task import DecodeTask, is_single_gif, no_media_error
from wordreel.media.media_info import real_duration
from wordreel.media.orientation import orientation
from wordreel.media.packets import read_packets
from wordreel.media.timestamps import StreamClock
from wordreel.media.types import FrameNeed
from wordreel.media.video_sampler import Scaler, sample_still

SPARSE = 1.5  # steps between two key frames from which on the gap may be filled
CHEAP = (
    3_000_000  # pixels a second of media that may be decoded to fill gaps: 300 × 224 at 45 frames a second
)
HEAD_START = 20.0  # seconds of media for which that is granted in advance


def decode_quick_look(task: DecodeTask, need: FrameNeed, window: float, send: Send) -> None:
    """Send `begin`, then for each window its `frame` messages and a `window`, as `decode_windows` does."""
    opened = task.open()
    stream = video_stream(opened)
    if task.container.picture or is_single_gif(task):
        _still(opened, stream, task, need, send)
        return
    looks = None if stream is None else _KeyFrames(opened, stream, task, need, Heartbeat(send))
    first = None if looks is None else next(looks, None)
    if looks is None or first is None:
        if audio_stream(opened) is None:
            raise no_media_error(task, stream is not None)
        send({"is": "begin", "video": False, "audio": True, "orientation": 0})
        send({"is": "window", "start": 0.0, "end": real_duration(task), "last": True})
        return
    send({"is": "begin", "video": True, "audio": False, "orientation": orientation(first[1], stream)})
    scaler = Scaler(need)
    start = 0.0
    for number, (time, frame) in enumerate(_chain(first, looks)):
        while time >= start + window:
            send({"is": "window", "start": start, "end": start + window, "last": False})
            start += window
        send_image(send, 0, number, 1, scaler(frame), time=time)
    send({"is": "window", "start": start, "end": max(start, looks.end), "last": True})


def _still(opened: Any, stream: Any, task: DecodeTask, need: FrameNeed, send: Send) -> None:
    if stream is None:
        raise no_media_error(task, False)
    images: list[Any] = []
    turn = sample_still(opened, stream, {0: need}, task.limits, lambda i, f, c, image: images.append(image))
    send({"is": "begin", "video": True, "audio": False, "orientation": turn})
    send_image(send, 0, 0, 1, images[0], time=0.0)
    send({"is": "window", "start": 0.0, "end": 0.0, "last": True})


def _chain(first: tuple[float, Any], rest: Iterator[tuple[float, Any]]) -> Iterator[tuple[float, Any]]:
    yield first
    yield from rest


class _KeyFrames(Iterator[tuple[float, Any]]):
    """Times and frames, in order; `end` is where the video has been read to."""

    def __init__(
        self, container: Any, stream: Any, task: DecodeTask, need: FrameNeed, heartbeat: Heartbeat
    ) -> None:
        self._context = stream.codec_context
        check_pixels(self._context.width, self._context.height, task.limits)
        # One thread: frame threads would hold each lone frame back until more packets came.
        stream.thread_type = "SLICE"
        self._limits, self._heartbeat = task.limits, heartbeat
        self._step = 1.0 / need.rate
        self._clock = StreamClock(container, stream, 0.04)
        self._last = -np.inf  # when the last frame that was returned is displayed
        self._spent = 0.0  # pixels decoded to fill gaps
        self._group: list[Any] | None = None  # packets since the last key frame; None where they are too many
        self._frames = self._read(container, stream)
        self.end = 0.0

    def __next__(self) -> tuple[float, Any]:
        return next(self._frames)

    def _read(self, container: Any, stream: Any) -> Iterator[tuple[float, Any]]:
        for packet in read_packets(container, stream):
            if not packet.size:
                continue
            time = self._packet_time(packet)
            if packet.is_keyframe:
                yield from self._fill(time)
                self._group = [packet]
                if time is None or time >= self._last + self._step:
                    for frame in self._decode([packet]):
                        yield from self._timed(frame)
                        break
            elif self._group is not None:
                self._group.append(packet)
                if len(self._group) * self._pixels > self._affordable(self.end):
                    self._group = None
            self._heartbeat(self.end)
        yield from self._fill(self.end)

    def _packet_time(self, packet: Any) -> float | None:
        """When a packet is displayed; None where that is known only once it is decoded."""
        stamp = packet.pts if packet.pts is not None else packet.dts
        time = None if stamp is None else self._clock.since(stamp)
        if time is not None:
            length = max(0, packet.duration or 0) * float(packet.time_base or 0)
            self.end = max(self.end, time + length)
            if time > self._limits.seconds:
                raise OverLimit(
                    f"a frame at {time:.0f} seconds is over the limit of {self._limits.seconds:.0f} seconds"
                )
        return time

    def _fill(self, until: float | None) -> Iterator[tuple[float, Any]]:
        """Frames between the last one and the next key frame, where there is room for any and it is cheap."""
        group, self._group = self._group, None
        if group is None or until is None or until < self._last + SPARSE * self._step:
            return
        self._spent += len(group) * self._pixels
        for frame in self._decode(group):
            time = self._packet_time(frame)
            if time is not None and self._last + self._step <= time <= until - self._step / 2:
                yield from self._timed(frame)

    def _timed(self, frame: Any) -> Iterator[tuple[float, Any]]:
        """Yield the frame and its time, unless it comes too soon after the one before."""
        check_pixels(frame.width, frame.height, self._limits)
        time = max(0.0, self._clock.time(frame))
        if time >= self._last + self._step:
            self._last = time
            self.end = max(self.end, time)
            yield time, frame

    def _decode(self, packets: list[Any]) -> Iterator[Any]:
        """Yield the frames of packets that begin with a key frame, and nothing of what comes after them."""
        import av

        try:
            for packet in (*packets, None):
                try:
                    yield from self._context.decode(packet)
                except (av.error.MemoryError, MemoryError):
                    raise
                except (av.FFmpegError, ValueError):
                    continue
        finally:
            self._context.flush_buffers()

    @property
    def _pixels(self) -> float:
        return float(self._context.width * self._context.height)

    def _affordable(self, reached: float) -> float:
        return CHEAP * (reached + HEAD_START) - self._spent
