"""Cut a moment out of a file: packets are copied where that can be done, else encoded. Runs in the worker.

A copy of pictures can begin at a key frame only. If one lies at most `tolerance` seconds before the moment,
the clip begins there, early by that much, and no picture is encoded. Otherwise the pictures are encoded as
H.264, from the frame on display at the start. Sound is copied if the new container can hold it, else encoded
as AAC.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from wordreel.errors import BrokenMedia, NotMedia
from wordreel.media.container import (
    DecodeTask,
    FilePosition,
    audio_stream,
    check_pixels,
    is_single_gif,
    no_media_error,
    video_stream,
)
from wordreel.media.decode import Heartbeat, threads
from wordreel.media.packets import StreamClock, decode_frames, read_packets
from wordreel.media.types import CutRequest
from wordreel.media.video_sampler import orientation, upright

Send = Callable[..., None]
TimedPacket = tuple[float, Any]  # seconds since the start of the clip, and a packet of the new file
BLOCK = 1 << 18  # bytes of the new file in one message


def cut(task: DecodeTask, request: CutRequest, send: Send) -> None:
    """Send the bytes of the new file as `data` messages, then a `cut` that says what was done."""
    import av

    if task.container.picture or is_single_gif(task):
        raise NotMedia("a picture has no moments to cut")
    source = task.open()
    stream = video_stream(source)
    picture = None if stream is None else PictureCut.open(task, source, stream, request)
    sound = SoundCut.open(task, request, picture)
    if picture is None and sound is None:
        raise no_media_error(task, stream is not None)
    writer = MessageWriter(send)
    out = av.open(writer, "w", format=request.container, buffer_size=BLOCK)
    parts = [part.packets(out) for part in (picture, sound) if part is not None]
    heartbeat, written, last = Heartbeat(send), 0, 0.0
    for time, packet in heapq.merge(*parts, key=lambda timed: timed[0]):
        out.mux_one(packet)
        written += 1
        writer.reached = last = max(last, time)
        heartbeat(last)
    if not written:
        raise BrokenMedia("there is nothing to cut at this moment: the file ends before it")
    out.close()
    send(
        {
            "is": "cut",
            "start": request.start if picture is None else max(0.0, picture.start),
            "end": request.end if picture is None else max(0.0, picture.end),
            "picture": "none" if picture is None else "copied" if picture.copied else "encoded",
            "sound": "none" if sound is None else "copied" if sound.copied else "encoded",
        }
    )


class MessageWriter(FilePosition):
    """A file object whose bytes go to the parent, which writes a file: each piece with its position."""

    def __init__(self, send: Send) -> None:
        super().__init__()
        self._send = send
        self.reached = 0.0  # seconds of the clip that are written

    def write(self, data: Any) -> int:
        """Send bytes with their position."""
        self._send({"is": "data", "at": self._position, "reached": self.reached}, data)
        self._position += len(data)
        self._size = max(self._size, self._position)
        return len(data)


COPIED_VIDEO = {
    "mp4": {"h264", "hevc", "av1", "mpeg4", "vp9"},
    "matroska": {"h264", "hevc", "av1", "mpeg4", "vp9", "vp8", "mpeg2video", "theora", "mjpeg"},
}
PLAYABLE_VIDEO = {"h264"}  # by every browser, in an MP4 file
INDEXED = {"mov", "matroska"}  # demuxers whose packets all have stamps that can be trusted
TICK = Fraction(1, 90_000)  # seconds: to which the times of encoded frames are rounded
ENCODER, QUALITY = "libx264", {"preset": "veryfast", "crf": "18"}
EXACT = 1e-3  # seconds: a frame so little after the start is the one at the start
UNKNOWN = 32  # packets after a seek that may lack a decoding stamp; more than codecs ever reorder by
BACK = (0.0, 1.0, 5.0, 20.0)  # seconds before the moment at which its key frame is looked for


class PictureCut:
    """The pictures of the clip; `start` is where they begin, in seconds of the file."""

    def __init__(self, source: Any, stream: Any, clock: StreamClock, request: CutRequest, turn: int) -> None:
        self._source, self._stream, self._clock, self._request = source, stream, clock, request
        self._turn = turn
        self._half = clock.step / 2
        self._key = self._key_frame()
        self.copied = self._key is not None
        self.start = self._clock.since(self._key) or 0.0 if self._key is not None else request.start
        self.origin = clock.origin
        self.end = self.start

    @classmethod
    def open(cls, task: DecodeTask, source: Any, stream: Any, request: CutRequest) -> PictureCut | None:
        """Find the frame at the start of the moment; None where there are no pictures."""
        check_pixels(stream.codec_context.width, stream.codec_context.height, task.limits)
        threads(stream)
        rate = stream.average_rate or stream.base_rate
        clock = StreamClock(source, stream, 1.0 / float(rate) if rate and float(rate) >= 0.1 else 0.04)
        frame = next(decode_frames(source, stream), None)
        if frame is None:
            return None
        check_pixels(frame.width, frame.height, task.limits)
        clock.time(frame)
        return cls(source, stream, clock, request, orientation(frame, stream))

    def _key_frame(self) -> int | None:
        """Return the stamp of the key frame that a copy begins with; None if the pictures must be encoded."""
        request = self._request
        codecs = PLAYABLE_VIDEO if request.playable else COPIED_VIDEO[request.container]
        if self._stream.codec_context.codec.canonical_name not in codecs:
            return None
        if self._source.format.name.split(",")[0] not in INDEXED:
            return None
        first, last = request.start - request.tolerance, request.start + self._half
        for back in BACK:
            if not self._seek(request.start + self._half - back):
                return None
            found = None
            for packet in read_packets(self._source, self._stream):
                if packet.pts is None:
                    return None
                if self._seconds(_stamp(packet)) > last:
                    break
                if packet.is_keyframe and first <= self._seconds(packet.pts) <= last:
                    found = int(packet.pts)
            if found is not None:
                return found
            if back > request.tolerance or back >= request.start:
                return None
        return None

    def _seconds(self, stamp: int) -> float:
        return self._clock.since(stamp) or 0.0

    def _seek(self, second: float) -> bool:
        import av

        try:
            self._source.seek(self._clock.stamp(max(0.0, second)), stream=self._stream, backward=True)
        except (av.FFmpegError, ValueError, OverflowError):
            return False
        return True

    def packets(self, out: Any) -> Iterator[TimedPacket]:
        """Yield packets for the new file, copied or encoded."""
        return self._copied(out) if self._key is not None else self._encoded(out)

    def _copied(self, out: Any) -> Iterator[TimedPacket]:
        target = out.add_stream_from_template(self._stream)
        key = self._key or 0
        step = max(1, round(self._clock.step / self._stream.time_base))
        for packet in _with_dts(self._from_key(key), step):
            if packet.pts is None or packet.pts < key:
                continue  # pictures that are shown before the key frame, and need what was cut off
            if self._seconds(packet.dts) >= self._request.end:
                return
            self.end = max(self.end, self._seconds(packet.pts + max(packet.duration or 0, 1)))
            packet.pts, packet.dts = packet.pts - key, packet.dts - key
            packet.stream = target
            yield timed(packet)

    def _from_key(self, key: int) -> Iterator[Any]:
        """Yield the packets from the key frame with this stamp on."""
        for back in BACK:
            self._seek(self.start + self._half - back)
            packets = read_packets(self._source, self._stream)
            for packet in packets:
                if packet.pts == key and packet.is_keyframe:
                    yield packet
                    yield from packets
                    return
                if packet.pts is not None and _stamp(packet) > key:
                    break

    def _encoded(self, out: Any) -> Iterator[TimedPacket]:
        from av.video.reformatter import VideoReformatter

        target, last = None, -1
        reformatter = VideoReformatter()
        for time, frame in self._frames():
            if target is None:
                target = self._encoder(out, frame)
            image = self._upright(frame)
            image = reformatter.reformat(image, target.width, target.height, format="yuv420p", threads=1)
            image.time_base, last = TICK, max(last + 1, round((time - self.start) / TICK))
            image.pts = last
            self.end = time + self._clock.step
            for packet in target.encode(image):
                yield timed(packet)
        if target is not None:
            for packet in target.encode(None):
                yield timed(packet)

    def _encoder(self, out: Any, frame: Any) -> Any:
        rate = self._stream.average_rate or self._stream.base_rate or Fraction(25)
        width, height = (frame.height, frame.width) if self._turn % 2 else (frame.width, frame.height)
        target = out.add_stream(ENCODER, rate=rate, options=QUALITY)
        target.width, target.height, target.pix_fmt = max(2, width & ~1), max(2, height & ~1), "yuv420p"
        target.time_base = target.codec_context.time_base = TICK
        target.codec_context.thread_count = 2
        ratio = self._stream.sample_aspect_ratio
        if ratio:
            target.codec_context.sample_aspect_ratio = 1 / ratio if self._turn % 2 else ratio
        return target

    def _upright(self, frame: Any) -> Any:
        import av
        import numpy as np

        if not self._turn:
            return frame
        turned = upright(frame.to_ndarray(format="rgb24"), self._turn)
        return av.VideoFrame.from_ndarray(np.ascontiguousarray(turned), format="rgb24")

    def _frames(self) -> Iterator[tuple[float, Any]]:
        """Yield the frames on display from the start of the moment to its end, each with a later time."""
        request = self._request
        self._seek(request.start)
        self._clock.jump()
        frames = decode_frames(self._source, self._stream)
        frame = next(frames, None)
        if request.start > 0 and (frame is None or self._clock.time(frame) > request.start + EXACT):
            self._seek(0.0)
            self._clock.jump()
            frames = decode_frames(self._source, self._stream)
            frame = next(frames, None)
        shown, last = None, -1.0
        while frame is not None:
            time = self._clock.time(frame)
            if time >= request.end:
                break
            if time > request.start + EXACT:
                if shown is not None:
                    yield request.start, shown
                    shown = None
                if time > last:
                    yield time, frame
                    last = time
            else:
                shown = frame
            frame = next(frames, None)
        if shown is not None and (frame is not None or self._clock.last + self._clock.step > request.start):
            yield request.start, shown


def _stamp(packet: Any) -> int:
    """When a packet is decoded, or shown where that is not known."""
    return int(packet.pts if packet.dts is None else packet.dts)


def _with_dts(packets: Iterator[Any], step: int) -> Iterator[Any]:
    """Packets from a key frame on. After a seek some demuxers do not know when the first are decoded."""
    waiting: list[Any] = []
    for packet in packets:
        waiting.append(packet)
        if packet.dts is None and len(waiting) < UNKNOWN:
            continue
        last = packet.dts if packet.dts is not None else min(one.pts for one in waiting)
        for number, one in enumerate(reversed(waiting)):
            one.dts = last - number * step
        yield from waiting
        waiting = []


COPIED_SOUND = {
    "mp4": {"aac", "mp3", "ac3", "eac3", "alac", "opus"},
    "matroska": {"aac", "mp3", "ac3", "eac3", "alac", "opus", "vorbis", "flac", "pcm_s16le", "pcm_s24le"},
}
PLAYABLE_SOUND = {"aac", "mp3"}  # by every browser, in an MP4 file
SOUND_ENCODER, SOUND_RATES = "aac", range(8_000, 96_001)


class SoundCut:
    """The sound of the clip, which begins where the pictures do."""

    def __init__(self, source: Any, stream: Any, request: CutRequest, picture: PictureCut | None) -> None:
        self._source, self._stream, self._request = source, stream, request
        first = float((stream.start_time or 0) * stream.time_base)
        self._origin = first if picture is None else picture.origin
        self._start = request.start if picture is None else picture.start
        codecs = PLAYABLE_SOUND if request.playable else COPIED_SOUND[request.container]
        self.copied = stream.codec_context.codec.canonical_name in codecs

    @classmethod
    def open(cls, task: DecodeTask, request: CutRequest, picture: PictureCut | None) -> SoundCut | None:
        """Open a second demuxer for the sound.

        In badly interleaved files the sound of a picture lies far from it.
        """
        source = task.open()
        stream = audio_stream(source)
        if stream is None or next(decode_frames(source, stream), None) is None:
            return None
        return cls(source, stream, request, picture)

    def packets(self, out: Any) -> Iterator[TimedPacket]:
        """Yield packets for the new file, copied or encoded."""
        import av

        second = max(0.0, self._origin + self._start - 0.5)
        try:
            self._source.seek(int(second / self._stream.time_base), stream=self._stream, backward=True)
        except (av.FFmpegError, ValueError, OverflowError):
            self._source.seek(0)
        return self._copied(out) if self.copied else self._encoded(out)

    def _seconds(self, stamp: int) -> float:
        """Since the start of the clip."""
        return float(stamp * self._stream.time_base) - self._origin - self._start

    def _copied(self, out: Any) -> Iterator[TimedPacket]:
        target = out.add_stream_from_template(self._stream)
        length = self._request.end - self._start
        shift = round((self._origin + self._start) / self._stream.time_base)
        last = -1
        for packet in read_packets(self._source, self._stream):
            if packet.pts is None or packet.size == 0 or self._seconds(packet.pts) < 0:
                continue
            if self._seconds(packet.pts) >= length:
                return
            if packet.pts - shift <= last:
                continue  # damage: stamps of sound never go back
            last = packet.pts - shift
            packet.pts = packet.dts = last
            packet.stream = target
            yield float(last * self._stream.time_base), packet

    def _encoded(self, out: Any) -> Iterator[TimedPacket]:
        from av import AudioResampler

        context = self._stream.codec_context
        rate = context.sample_rate if context.sample_rate in SOUND_RATES else 48_000
        layout = "mono" if context.channels == 1 else "stereo"
        target = out.add_stream(SOUND_ENCODER, rate=rate, layout=layout)
        resampler = AudioResampler(format="fltp", layout=layout, rate=rate, frame_size=1024)
        length, sample = self._request.end - self._start, -1

        def encode(frame: Any) -> Iterator[TimedPacket]:
            nonlocal sample
            if frame is not None:
                frame.pts, frame.time_base = sample, Fraction(1, rate)
                sample += frame.samples
            for packet in target.encode(frame):
                yield timed(packet)

        for frame in decode_frames(self._source, self._stream):
            if frame.pts is None or self._seconds(frame.pts) < 0:
                continue
            time = self._seconds(frame.pts)
            if time >= length:
                break
            sample = round(time * rate) if sample < 0 else sample
            frame.pts = None
            for piece in resampler.resample(frame):
                yield from encode(piece)
        if sample >= 0:
            for piece in (*resampler.resample(None), None):
                yield from encode(piece)


def timed(packet: Any) -> TimedPacket:
    """Return a packet with when it is decoded."""
    return float(packet.dts * packet.time_base), packet
