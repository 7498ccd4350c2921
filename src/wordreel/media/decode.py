"""Decode a file in one pass, window by window or key frame by key frame, as messages. Runs in the worker."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

from wordreel.media.audio_sampler import AudioSampler
from wordreel.media.container import audio_stream, check_pixels, video_stream
from wordreel.media.decode_task import DecodeTask, is_single_gif, no_media_error
from wordreel.media.media_info import real_duration
from wordreel.media.orientation import orientation
from wordreel.media.packets import decode_frames
from wordreel.media.timestamps import StreamClock
from wordreel.media.types import AudioNeed, FrameNeed, Need
from wordreel.media.video_sampler import Scaler, VideoSampler, sample_still
from wordreel.util.cores import cores

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
    send(
        {
            "is": "begin",
            "video": video is not None and video.has_media,
            "audio": audio is not None and audio.has_media,
            "orientation": video.orientation if video is not None and video.has_media else 0,
        }
    )
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
        send({"is": "window", "start": first, "end": max(first, finish), "last": last})
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
    images: list[tuple[int, Any]] = []
    turn = sample_still(
        opened, stream, needs, task.limits, lambda i, _f, _c, image: images.append((i, image))
    )
    send({"is": "begin", "video": True, "audio": False, "orientation": turn})
    for index, image in images:
        send_image(send, index, 0, 1, image)
    send({"is": "window", "start": 0.0, "end": 0.0, "last": True})


def threads(stream: Any) -> None:
    """One decoding thread or two.

    Threads spend on one another: two take a quarter more processor time for 1080p, and hardly gain on one, as
    frames are scaled and sent one after the other. Where the networks would have that time, on one or two
    cores, only pictures whose decoding is most of the work get two. Those that a device decodes only wait.
    """
    context = stream.codec_context
    one = 0 < context.width * context.height <= (SMALL if cores() > 2 else LARGE)
    alone = one or context.is_hwaccel
    stream.thread_type = "SLICE" if alone else "AUTO"
    context.thread_count = 1 if alone else 2


def decode_keyframes(task: DecodeTask, need: FrameNeed, start: float, stop: float, send: Send) -> None:
    """Send the key frame at or before each of `start + k / rate`, each key frame once."""
    import av

    stop = min(stop, real_duration(task))
    opened = task.open()
    stream = video_stream(opened)
    if stream is None:
        raise no_media_error(task, False)
    check_pixels(stream.codec_context.width, stream.codec_context.height, task.limits)
    # One thread: frame threads would hold each lone frame back until more packets came.
    stream.thread_type = "SLICE"
    frame = next(decode_frames(opened, stream), None)
    if frame is None:
        raise no_media_error(task, True)
    clock, scaler, heartbeat = StreamClock(opened, stream, 0.04), Scaler(need), Heartbeat(send)
    clock.time(frame)
    send({"is": "begin", "video": True, "audio": False, "orientation": orientation(frame, stream)})
    last, sent, k = -1.0, 0, 0
    stream.codec_context.skip_frame = "NONKEY"
    while k == 0 or start + k / need.rate < stop:
        target = start + k / need.rate
        k += 1
        if target > 0:
            try:
                opened.seek(clock.stamp(target), stream=stream, backward=True)
            except (av.FFmpegError, ValueError, OverflowError):
                continue
            clock.jump()
            frame = next(decode_frames(opened, stream), None)
        if frame is None:
            continue
        check_pixels(frame.width, frame.height, task.limits)
        time = max(0.0, clock.time(frame))
        if time > last:
            send_image(send, 0, sent, 1, scaler(frame), time=time)
            last, sent = time, sent + 1
        heartbeat(target)
    send({"is": "window", "start": start, "end": max(start, stop), "last": True})
