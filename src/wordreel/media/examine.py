"""What a file is, without decoding more than its first frame. Runs inside the worker."""

from __future__ import annotations

from typing import Any

from wordreel.errors import OverLimit
from wordreel.media.orient import orientation, turned
from wordreel.media.packets import decoded
from wordreel.media.serve import Job, is_single_gif, nothing
from wordreel.media.source import audio_stream, check_pixels, video_stream
from wordreel.media.types import MediaInfo


def examine(job: Job) -> MediaInfo:
    """Probe a file: a stream counts only if a first frame of it can be decoded."""
    opened = job.open()
    stream = video_stream(opened)
    frame = None
    if stream is not None:
        check_pixels(stream.codec_context.width, stream.codec_context.height, job.limits)
        stream.thread_type = "SLICE"
        frame = next(decoded(opened, stream), None)
    picture = job.container.picture or is_single_gif(job)
    heard, sound = (None, None) if picture else _first_sound(job)
    if frame is None and sound is None:
        raise nothing(job, stream is not None)
    facts: dict[str, Any] = {}
    if sound is not None and heard is not None:
        facts["audio_codec"] = heard.codec_context.name
        facts["sample_rate"] = sound.sample_rate
    if frame is not None and stream is not None:
        check_pixels(frame.width, frame.height, job.limits)
        turn = orientation(frame, stream)
        facts["width"], facts["height"] = turned(frame.width, frame.height, turn)
        facts["rotation"] = 90 * (turn & 3)
        facts["video_codec"] = stream.codec_context.name
        rate = stream.average_rate or stream.base_rate
        facts["frame_rate"] = 0.0 if picture or not rate else float(rate)
    kind = "image" if picture else "video" if frame is not None else "audio"
    seconds = 0.0 if picture else real_duration(job)
    return MediaInfo(kind=kind, container=job.container.name, duration=seconds, **facts)


def _first_sound(job: Job) -> tuple[Any | None, Any | None]:
    opened = job.open()
    stream = audio_stream(opened)
    return stream, None if stream is None else next(decoded(opened, stream), None)


def real_duration(job: Job) -> float:
    """Seconds from the first stamp to the end of the last packet that is really in the file.

    The header's claim is only where to look: the packets near it are read to the end of the file. When
    there are none (the claim lies, or the file was cut) all packets are walked, without decoding.
    """
    import av

    opened = job.open()
    streams = [s for s in (video_stream(opened), audio_stream(opened)) if s is not None]
    if not streams:
        return 0.0
    first = min((float(s.start_time * s.time_base) for s in streams if s.start_time is not None), default=0.0)
    video = video_stream(opened)
    if video is not None and video.start_time is not None:
        first = float(video.start_time * video.time_base)
    last = first
    claimed = (opened.duration or 0) / 1e6
    if claimed > 4.0:
        try:
            opened.seek(int((claimed - 2.0) * 1e6) + (opened.start_time or 0), backward=True)
            last = _last_stamp(opened, streams, first)
        except (av.FFmpegError, ValueError, OverflowError):
            last = first
    if last < first + claimed - 2.5 or last <= first:
        opened = job.open()
        chosen = {s.index for s in streams}
        last = _last_stamp(opened, [s for s in opened.streams if s.index in chosen], first)
    seconds = max(0.0, last - first)
    if seconds > job.limits.seconds:
        raise OverLimit(f"{seconds:.0f} seconds is over the limit of {job.limits.seconds:.0f} seconds")
    return seconds


def _last_stamp(opened: Any, streams: list[Any], first: float) -> float:
    import av

    last = first
    try:
        for packet in opened.demux(streams):
            stamp = packet.pts if packet.pts is not None else packet.dts
            if stamp is not None and packet.time_base:
                last = max(last, float((stamp + max(0, packet.duration or 0)) * packet.time_base))
    except (av.FFmpegError, IndexError):
        return last
    return last
