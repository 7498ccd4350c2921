"""The sound of a cut: copied if the new container can hold it, else encoded as AAC."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from wordreel.media.container import audio_stream
from wordreel.media.cut_picture import PictureCut
from wordreel.media.cut_request import CutRequest, TimedPacket, timed
from wordreel.media.decode_task import DecodeTask
from wordreel.media.packets import decode_frames, read_packets

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
