"""The one pass over a file, window after window, as messages. Runs inside the worker."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from wordreel.errors import BrokenMedia
from wordreel.media.claims import elsewhere
from wordreel.media.formats import GIF, MP4, Container
from wordreel.media.pictures import Pictures, still
from wordreel.media.sounds import Sounds
from wordreel.media.source import audio_stream, open_container, video_stream
from wordreel.media.types import AudioNeed, FrameNeed, Limits, Need

Send = Callable[..., None]
SLACK = 1.0
"""A remainder shorter than this (seconds) joins the last window instead of making one of its own."""


@dataclass(frozen=True)
class Job:
    """A file to decode: its descriptor, size and container, and the limits on it."""

    descriptor: int
    size: int
    container: Container
    limits: Limits

    def open(self) -> Any:
        return open_container(self.descriptor, self.size, self.container, self.limits)


def serve(job: Job, needs: list[Need], window: float, start: float, stop: float, send: Send) -> None:
    """Send `begin`, then for each window its `frame` and `sound` messages and a `window`."""
    frame_needs = {i: n for i, n in enumerate(needs) if isinstance(n, FrameNeed)}
    audio_needs = {i: n for i, n in enumerate(needs) if isinstance(n, AudioNeed)}
    opened = job.open()
    stream = video_stream(opened)
    if job.container.picture or is_single_gif(job):
        _serve_still(opened, stream, job, frame_needs, send)
        return

    pulse = Pulse(send)

    def frame(index: int, first: int, count: int, image: Any) -> None:
        send_image(send, index, first, count, image)

    def sound(index: int, first: int, data: Any) -> None:
        send({"is": "sound", "need": index, "first": first}, data)

    pictures, origin = None, None
    if stream is not None:
        threads(stream)
        pictures = Pictures(opened, stream, frame_needs, job.limits, frame, start, stop)
        if pictures.found:
            origin = pictures.clock.origin
    sounds = None
    # The sound has a demuxer of its own, so that badly interleaved files need no unbounded queue.
    if audio_needs or pictures is None or not pictures.found:
        second = job.open()
        heard = audio_stream(second)
        if heard is not None:
            sounds = Sounds(second, heard, audio_needs, job.limits, sound, origin)
    taps = [tap for tap in (pictures, sounds) if tap is not None and tap.found]
    if not taps:
        raise nothing(job, stream is not None)
    send(
        {
            "is": "begin",
            "video": pictures is not None and pictures.found,
            "audio": sounds is not None and sounds.found,
            "orientation": pictures.orientation if pictures is not None and pictures.found else 0,
        }
    )
    if not frame_needs:
        # A silent video asked only for its sound still has a length to report.
        taps = [tap for tap in taps if tap is not pictures] or taps
    _windows(taps, window, start, stop, send, pulse)


def _windows(taps: list[Any], window: float, start: float, stop: float, send: Send, pulse: Pulse) -> None:
    slack = min(SLACK, window / 2)
    end = start
    while True:
        begin, end = end, min(end + window, stop)
        for tap in taps:
            tap.flush(end)  # what the window before read ahead
            reached = begin
            while True:
                # Small steps, so that the parent hears of progress within a long window.
                reached = min(reached + 1.0, end + slack)
                tap.fill(reached, end)
                pulse(min(reached, tap.end))
                if tap.done or reached >= end + slack:
                    break
        last = all(tap.done and tap.end <= end + slack for tap in taps) or end >= stop
        for tap in taps:
            tap.flush(math.inf if last else end)
        finish = max([tap.end for tap in taps], default=end) if last else end
        send({"is": "window", "start": begin, "end": max(begin, finish), "last": last})
        if last:
            return


class Pulse:
    """Tells the parent, a few times a second at most, how far the decoding has come."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._last = time.monotonic()

    def __call__(self, reached: float) -> None:
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


def _serve_still(opened: Any, stream: Any, job: Job, needs: dict[int, FrameNeed], send: Send) -> None:
    if stream is None:
        raise nothing(job, False)
    images: list[tuple[int, Any]] = []
    turn = still(opened, stream, needs, job.limits, lambda i, _f, _c, image: images.append((i, image)))
    send({"is": "begin", "video": True, "audio": False, "orientation": turn})
    for index, image in images:
        send_image(send, index, 0, 1, image)
    send({"is": "window", "start": 0.0, "end": 0.0, "last": True})


def is_single_gif(job: Job) -> bool:
    """Whether a GIF holds one picture only; more make it a video."""
    if job.container != GIF:
        return False
    packets = 0
    for packet in job.open().demux(video=0):
        packets += packet.size > 0
        if packets > 1:
            return False
    return True


def threads(stream: Any) -> None:
    """Two decoding threads: enough to hide the reading, few enough to share the machine."""
    stream.thread_type = "AUTO"
    stream.codec_context.thread_count = 2


def nothing(job: Job, video: bool) -> BrokenMedia:
    """Why a file without a single frame or sample is refused."""
    if job.container == MP4 and elsewhere(job.descriptor, job.size):
        return BrokenMedia("its pictures and sound are in another file, which is not opened")
    if video:
        return BrokenMedia("truncated or damaged: no frame could be decoded")
    return BrokenMedia("no picture or sound in it could be decoded")
