"""What a file is, without decoding more than its first frame. Runs in the worker."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from wordreel.errors import OverLimit
from wordreel.media.capture_date import recorded_date
from wordreel.media.container import (
    DecodeTask,
    audio_stream,
    check_pixels,
    is_single_gif,
    no_media_error,
    video_stream,
)
from wordreel.media.packets import decode_frames
from wordreel.media.types import MediaInfo
from wordreel.media.video_sampler import displayed_size, orientation


def read_info(task: DecodeTask) -> MediaInfo:
    """Probe a file: a stream counts only if its first frame can be decoded."""
    opened = task.open()
    stream = video_stream(opened)
    frame = None
    if stream is not None:
        check_pixels(stream.codec_context.width, stream.codec_context.height, task.limits)
        stream.thread_type = "SLICE"
        frame = next(decode_frames(opened, stream), None)
    picture = task.container.picture or is_single_gif(task)
    heard, sound = (None, None) if picture else _first_sound(task)
    if frame is None and sound is None:
        raise no_media_error(task, stream is not None)
    facts: dict[str, Any] = {}
    if sound is not None and heard is not None:
        facts["audio_codec"] = heard.codec_context.name
        facts["sample_rate"] = sound.sample_rate
    if frame is not None and stream is not None:
        check_pixels(frame.width, frame.height, task.limits)
        turn = orientation(frame, stream)
        facts["width"], facts["height"] = displayed_size(frame.width, frame.height, turn)
        facts["rotation"] = 90 * (turn & 3)
        facts["video_codec"] = stream.codec_context.name
        rate = stream.average_rate or stream.base_rate
        facts["frame_rate"] = 0.0 if picture or not rate else float(rate)
    facts["recorded"] = recorded_date(_metadata(opened, *opened.streams), _metadata(frame))
    kind = "image" if picture else "video" if frame is not None else "audio"
    seconds = 0.0 if picture else real_duration(task)
    return MediaInfo(kind=kind, container=task.container.name, duration=seconds, **facts)


def _metadata(*sources: Any) -> dict[str, str]:
    """Return the metadata of some sources, those of the first before those of the others."""
    merged: dict[str, str] = {}
    for source in reversed(sources):
        with suppress(UnicodeDecodeError):  # EXIF of cameras is in any encoding
            merged |= source.metadata if source is not None else {}
    return merged


def _first_sound(task: DecodeTask) -> tuple[Any | None, Any | None]:
    opened = task.open()
    stream = audio_stream(opened)
    return stream, None if stream is None else next(decode_frames(opened, stream), None)


def real_duration(task: DecodeTask) -> float:
    """Return seconds from the first stamp to the end of the last packet that is really in the file.

    The header's duration is only where to look: the packets near it are read to the end of the file. If
    there are none (the header is wrong, or the file was cut), all packets are read, without decoding.
    """
    import av

    opened = task.open()
    streams = [s for s in (video_stream(opened), audio_stream(opened)) if s is not None]
    if not streams:
        return 0.0
    first = min((float(s.start_time * s.time_base) for s in streams if s.start_time is not None), default=0.0)
    video = video_stream(opened)
    if video is not None and video.start_time is not None:
        first = float(video.start_time * video.time_base)
    last = first
    declared = (opened.duration or 0) / 1e6
    if declared > 4.0:
        try:
            opened.seek(int((declared - 2.0) * 1e6) + (opened.start_time or 0), backward=True)
            last = _last_stamp(opened, streams, first)
        except (av.FFmpegError, ValueError, OverflowError):
            last = first
    if last < first + declared - 2.5 or last <= first:
        opened = task.open()
        chosen = {s.index for s in streams}
        last = _last_stamp(opened, [s for s in opened.streams if s.index in chosen], first)
    seconds = max(0.0, last - first)
    if seconds > task.limits.seconds:
        raise OverLimit(f"{seconds:.0f} seconds is over the limit of {task.limits.seconds:.0f} seconds")
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


def first_frame(task: DecodeTask, opened: Any, stream: Any) -> Any:
    """Return the first frame of a stream, within the limits; raise a MediaError if there is none."""
    check_pixels(stream.codec_context.width, stream.codec_context.height, task.limits)
    frame = next(decode_frames(opened, stream), None)
    if frame is None:
        raise no_media_error(task, True)
    check_pixels(frame.width, frame.height, task.limits)
    return frame
