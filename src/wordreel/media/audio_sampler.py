"""Resample an audio stream to several rates in one pass."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from wordreel.errors import OverLimit
from wordreel.media.packets import StreamClock, decode_frames
from wordreel.media.types import AudioNeed, Limits

Emit = Callable[[int, int, Any], None]
"""Called with the need's number, the first sample's number and the samples as float32 bytes."""

_GAP = 0.1
"""Sound whose stamp is this far from where the last sound ended is a new run, not jitter."""


class RateBuffer:
    """Sound at one rate: samples numbered from the file's time 0, with silence in gaps."""

    def __init__(self, rate: int) -> None:
        self.rate = rate
        self.position = 0  # samples so far
        self._resampler: Any = None
        self._skip = 0
        self._pending: deque[tuple[int, memoryview]] = deque()

    def drain(self) -> None:
        """End the run: take the last samples out of the resampler."""
        if self._resampler is not None:
            for piece in self._resampler.resample(None):
                if piece is not None:
                    self._append(piece)
        self._resampler = None

    def silence(self, before: float) -> None:
        """Add zeros up to a time, if there are no samples yet."""
        count = round(before * self.rate) - self.position
        if count > 0:
            self._pending.append((self.position, memoryview(bytes(4 * count))))
            self.position += count

    def feed(self, frame: Any, time: float) -> None:
        """Sound that starts at `time`, or continues the last one."""
        from av import AudioResampler

        if self._resampler is None:
            self._skip = max(0, self.position - round(time * self.rate))
            # rematrix_maxval: channels are averaged; without it float sound is mixed louder than it was.
            self._resampler = AudioResampler(
                format="flt", layout="mono", rate=self.rate, options={"rematrix_maxval": "1.0"}
            )
        for piece in self._resampler.resample(frame):
            self._append(piece)

    def _append(self, piece: Any) -> None:
        data = memoryview(bytes(piece.planes[0]))[: 4 * piece.samples]
        skipped = min(self._skip, piece.samples)
        self._skip -= skipped
        if skipped < piece.samples:
            self._pending.append((self.position, data[4 * skipped :]))
            self.position += piece.samples - skipped

    def take(self, before: float) -> Iterator[tuple[int, memoryview]]:
        """Yield the samples whose time is before `before`."""
        stop = math.inf if before == math.inf else math.ceil(before * self.rate)
        while self._pending and self._pending[0][0] < stop:
            first, data = self._pending.popleft()
            count = len(data) // 4
            if first + count > stop:
                cut = int(stop) - first
                self._pending.appendleft((first + cut, data[4 * cut :]))
                data = data[: 4 * cut]
            yield first, data


class AudioSampler:
    """Mono sound of a file at each requested rate. `origin` is the file's time 0 on its own clock."""

    def __init__(
        self,
        container: Any,
        stream: Any,
        needs: dict[int, AudioNeed],
        limits: Limits,
        emit: Emit,
        origin: float | None = None,
    ) -> None:
        self._limits = limits
        self._emit = emit
        self._needs = needs
        self._buffers = {rate: RateBuffer(rate) for rate in {need.rate for need in needs.values()}}
        self._clock = StreamClock(container, stream, 0.02)
        self._frames: Iterator[Any] = decode_frames(container, stream)
        self._shape: object = None
        self._run_end = -math.inf
        self._shift = 0.0
        self._ahead: Any = next(self._frames, None)
        self.has_media = self._ahead is not None
        self.done = not self.has_media
        self.end = 0.0
        if self._ahead is not None:
            first = self._clock.time(self._ahead)
            if origin is not None:
                self._shift = self._clock.origin - origin
            self.sample_rate = self._ahead.sample_rate
            self._schedule(first)

    def _schedule(self, time: float) -> None:
        """Decide when the next frame plays: right after the last one, or elsewhere as a new run."""
        self._ahead_time = time + self._shift
        if self._ahead_time > self._limits.seconds:
            raise OverLimit(
                f"sound at {self._ahead_time:.0f} seconds is over the limit of"
                f" {self._limits.seconds:.0f} seconds"
            )
        frame: Any = self._ahead
        shape = (frame.format.name, frame.layout.name, frame.sample_rate)
        self._new_run = shape != self._shape or abs(self._ahead_time - self._run_end) > _GAP
        self._shape = shape
        if self._new_run:
            self._run_end = self._ahead_time
        else:
            self._ahead_time = self._run_end
        length = frame.samples / max(1, frame.sample_rate)
        self._run_end += length
        self._clock.step = length

    def fill(self, until: float, window_end: float) -> None:
        """Decode all sound that starts before `until`; `window_end` and later waits for `flush`."""
        while not self.done:
            if self._ahead is None:
                for buffer in self._buffers.values():
                    buffer.drain()
                self.done = True
            elif self._new_run:
                for buffer in self._buffers.values():
                    buffer.drain()
                    buffer.silence(min(self._ahead_time, until))
            if self.done or self._ahead_time >= until:
                break
            for buffer in self._buffers.values():
                buffer.feed(self._ahead, self._ahead_time)
            self._ahead = next(self._frames, None)
            if self._ahead is not None:
                self._schedule(self._clock.time(self._ahead))
        self.end = max((buffer.position / buffer.rate for buffer in self._buffers.values()), default=0.0)
        self.flush(window_end)

    def flush(self, before: float) -> None:
        """Emit all samples before a time, one message a rate and need."""
        for rate, buffer in self._buffers.items():
            for first, data in buffer.take(before):
                for index, need in self._needs.items():
                    if need.rate == rate:
                        self._emit(index, first, data)
