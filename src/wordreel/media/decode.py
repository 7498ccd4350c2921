"""Decode a file in one pass, window by window or key frame by key frame, as messages. Runs in the worker.

A quick look decodes key frames alone: all packets are read and only some are decoded, so no index is needed
and nothing is sought. A key frame comes at most every `1 / rate` seconds. Encoders choose how far apart they
are: a second on phones, ten in films. Where there are more than `SPARSE` steps between two, the frames
between are decoded as well if that is cheap: small pictures, or few of them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import numpy as np

from wordreel.errors import OverLimit
from wordreel.media.audio_sampler import AudioSampler
from wordreel.media.container import (
    DecodeTask,
    audio_stream,
    check_pixels,
    is_single_gif,
    no_media_error,
    video_stream,
)
from wordreel.media.media_info import first_frame, real_duration
from wordreel.media.packets import StreamClock, read_packets
from wordreel.media.types import AudioNeed, FrameNeed, Need
from wordreel.media.video_sampler import Scaler, VideoSampler, orientation
from wordreel.util.machine import cores

Send = Callable[..., None]
SMALL = 640 * 360
"""Pixels of a picture that one thread decodes."""
LARGE = 2560 * 1440
"""Pixels of a picture over which decoding takes more than the networks do."""
SLACK = 1.0
"""A remainder shorter than this (seconds) joins the last window instead of making one of its own."""


def decode_windows(
    task: DecodeTask, needs: list[Need], window: float, start: float, stop: float, send: Send
) -> None:
    """Send `begin`, then for each window its `frame` and `sound` messages and a `window`."""
    frame_needs = {i: n for i, n in enumerate(needs) if isinstance(n, FrameNeed)}
    audio_needs = {i: n for i, n in enumerate(needs) if isinstance(n, AudioNeed)}
    opened = task.open_video()
    stream = video_stream(opened)
    if task.container.picture or is_single_gif(task):
        _decode_still(opened, stream, task, frame_needs, send)
        return

    heartbeat = Heartbeat(send)

    def frame(index: int, first: int, count: int, image: Any) -> None:
        send_image(send, index, first, count, image)

    def sound(index: int, first: int, data: Any) -> None:
        send({"is": "sound", "need": index, "first": first}, data)

    video, origin = None, None
    if stream is not None:
        threads(stream)
        video = VideoSampler(opened, stream, frame_needs, task.limits, frame, start, stop)
        if video.has_media:
            origin = video.clock.origin
    audio = None
    # The sound has a demuxer of its own, so that badly interleaved files need no unbounded queue.
    if audio_needs or video is None or not video.has_media:
        second = task.open()
        heard = audio_stream(second)
        if heard is not None:
            audio = AudioSampler(second, heard, audio_needs, task.limits, sound, origin)
    samplers = [sampler for sampler in (video, audio) if sampler is not None and sampler.has_media]
    if not samplers:
        raise no_media_error(task, stream is not None)
    shown = video is not None and video.has_media
    turn = video.orientation if video is not None and shown else 0
    _begin(send, shown, audio is not None and audio.has_media, turn)
    if not frame_needs:
        # A silent video requested only for its sound still has a duration to report.
        samplers = [sampler for sampler in samplers if sampler is not video] or samplers
    _windows(samplers, window, start, stop, send, heartbeat)


def _windows(
    samplers: list[Any], window: float, start: float, stop: float, send: Send, heartbeat: Heartbeat
) -> None:
    slack = min(SLACK, window / 2)
    end = start
    while True:
        first, end = end, min(end + window, stop)
        for sampler in samplers:
            sampler.flush(end)  # what the window before read ahead
            reached = first
            while True:
                # Small steps, so that the parent gets progress within a long window.
                reached = min(reached + 1.0, end + slack)
                sampler.fill(reached, end)
                heartbeat(min(reached, sampler.end))
                if sampler.done or reached >= end + slack:
                    break
        last = all(sampler.done and sampler.end <= end + slack for sampler in samplers) or end >= stop
        for sampler in samplers:
            sampler.flush(math.inf if last else end)
        finish = max([sampler.end for sampler in samplers], default=end) if last else end
        _end_window(send, first, finish, last)
        if last:
            return


class Heartbeat:
    """Reports progress to the parent, at most a few times a second."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._last = time.monotonic()

    def __call__(self, reached: float) -> None:
        """Send how far decoding is, a few times a second."""
        now = time.monotonic()
        if now - self._last > 0.25:
            self._last = now
            self._send({"is": "pulse", "reached": reached})


def send_image(send: Send, index: int, first: int, count: int, image: Any, **more: float) -> None:
    """Send one RGB frame for samples `first .. first + count`, rows padded to `stride` bytes."""
    plane = image.planes[0]
    header = {"is": "frame", "need": index, "first": first, "count": count, **more}
    size = {"width": image.width, "height": image.height, "stride": plane.line_size}
    send({**header, **size}, memoryview(plane)[: plane.line_size * image.height])


def _decode_still(
    opened: Any, stream: Any, task: DecodeTask, needs: dict[int, FrameNeed], send: Send
) -> None:
    if stream is None:
        raise no_media_error(task, False)
    frame = first_frame(task, opened, stream)
    _begin(send, turn=orientation(frame, stream))
    for index, need in needs.items():
        send_image(send, index, 0, 1, Scaler(need)(frame), time=0.0)
    _end_window(send, 0.0, 0.0, last=True)


def _begin(send: Send, video: bool = True, audio: bool = False, turn: int = 0) -> None:
    send({"is": "begin", "video": video, "audio": audio, "orientation": turn})


def _end_window(send: Send, start: float, end: float, last: bool) -> None:
    send({"is": "window", "start": start, "end": max(start, end), "last": last})


def threads(stream: Any) -> None:
    """Set one decoding thread or two.

    Threads spend on one another: two take a quarter more processor time for 1080p, and hardly gain on one, as
    frames are scaled and sent one after the other. Where the networks would have that time, on one or two
    cores, only pictures whose decoding is most of the work get two. Those that a device decodes only wait.
    """
    context = stream.codec_context
    one = 0 < context.width * context.height <= (SMALL if cores() > 2 else LARGE)
    alone = one or context.is_hwaccel
    stream.thread_type = "SLICE" if alone else "AUTO"
    context.thread_count = 1 if alone else 2


SPARSE = 1.5  # steps between two key frames from which on the gap may be filled
CHEAP = 3_000_000  # pixels decoded a second of media to fill gaps: 300 × 224 at 45 frames a second
HEAD_START = 20.0  # seconds of media for which that is granted in advance


def decode_quick_look(task: DecodeTask, need: FrameNeed, window: float, send: Send) -> None:
    """Send `begin`, then for each window its `frame` messages and a `window`, as `decode_windows` does."""
    opened = task.open()
    stream = video_stream(opened)
    if task.container.picture or is_single_gif(task):
        _decode_still(opened, stream, task, {0: need}, send)
        return
    looks = None if stream is None else _KeyFrames(opened, stream, task, need, Heartbeat(send))
    first = None if looks is None else next(looks, None)
    if looks is None or first is None:
        if audio_stream(opened) is None:
            raise no_media_error(task, stream is not None)
        _begin(send, video=False, audio=True)
        _end_window(send, 0.0, real_duration(task), last=True)
        return
    _begin(send, turn=orientation(first[1], stream))
    scaler = Scaler(need)
    start = 0.0
    for number, (seconds, frame) in enumerate(chain((first,), looks)):
        while seconds >= start + window:
            _end_window(send, start, start + window, last=False)
            start += window
        send_image(send, 0, number, 1, scaler(frame), time=seconds)
    _end_window(send, start, looks.end, last=True)


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
