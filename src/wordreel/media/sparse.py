"""Frames by key-frame seeking: a tenth of the work of a full pass, at uneven but true times."""

from __future__ import annotations

from wordreel.media.clock import Clock
from wordreel.media.examine import real_duration
from wordreel.media.orient import orientation
from wordreel.media.packets import decoded
from wordreel.media.pictures import Scaler
from wordreel.media.serve import Job, Pulse, Send, nothing, send_image
from wordreel.media.source import check_pixels, video_stream
from wordreel.media.types import FrameNeed


def serve_sparse(job: Job, need: FrameNeed, start: float, stop: float, send: Send) -> None:
    """Send the key frame at or before each of `start + k / rate`, each key frame once."""
    import av

    stop = min(stop, real_duration(job))
    opened = job.open()
    stream = video_stream(opened)
    if stream is None:
        raise nothing(job, False)
    check_pixels(stream.codec_context.width, stream.codec_context.height, job.limits)
    # One thread: frame threads would hold each lone frame back until more packets came.
    stream.thread_type = "SLICE"
    frame = next(decoded(opened, stream), None)
    if frame is None:
        raise nothing(job, True)
    clock, scaler, pulse = Clock(opened, stream, 0.04), Scaler(need), Pulse(send)
    clock.time(frame)
    send({"is": "begin", "video": True, "audio": False, "orientation": orientation(frame, stream)})
    shown, sent, k = -1.0, 0, 0
    stream.codec_context.skip_frame = "NONKEY"
    while k == 0 or start + k / need.rate < stop:
        wanted = start + k / need.rate
        k += 1
        if wanted > 0:
            try:
                opened.seek(clock.stamp(wanted), stream=stream, backward=True)
            except (av.FFmpegError, ValueError, OverflowError):
                continue
            clock.jump()
            frame = next(decoded(opened, stream), None)
        if frame is None:
            continue
        check_pixels(frame.width, frame.height, job.limits)
        time = max(0.0, clock.time(frame))
        if time > shown:
            send_image(send, 0, sent, 1, scaler(frame), time=time)
            shown, sent = time, sent + 1
        pulse(wanted)
    send({"is": "window", "start": start, "end": max(start, stop), "last": True})
