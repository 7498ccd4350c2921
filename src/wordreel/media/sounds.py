"""One pass over an audio stream that serves several sample rates at once."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from wordreel.errors import OverLimit
from wordreel.media.clock import Clock
from wordreel.media.packets import decoded
from wordreel.media.types import AudioNeed, Limits

Emit = Callable[[int, int, Any], None]
"""Called with the need's number, the first sample's number and the samples as float32 bytes."""

_GAP = 0.1
"""Sound whose stamp is this far from where the last sound ended is a new run, not jitter."""


class Lane:
    """Sound at one rate: samples numbered from the file's time 0, silence where there was none."""

    def __init__(self, rate: int) -> None:
        self.rate = rate
        self.position = 0  # samples made so far
        self._resampler: Any = None
        self._skip = 0
        self._kept: deque[tuple[int, memoryview]] = deque()

    def drain(self) -> None:
        """End the run: take the last samples out of the resampler."""
        if self._resampler is not None:
            for piece in self._resampler.resample(None):
                if piece is not None:
                    self._keep(piece)
        self._resampler = None

    def silence(self, before: float) -> None:
        """Zeros up to a time, if there are no samples yet."""
        count = round(before * self.rate) - self.position
        if count > 0:
            self._kept.append((self.position, memoryview(bytes(4 * count))))
            self.position += count

    def feed(self, frame: Any, time: float) -> None:
        """Sound that starts at `time`, or goes on where the last one ended."""
        from av import AudioResampler

        if self._resampler is None:
            self._skip = max(0, self.position - round(time * self.rate))
            # rematrix_maxval: channels are averaged; without it float sound is mixed louder than it was.
            self._resampler = AudioResampler(
                format="flt", layout="mono", rate=self.rate, options={"rematrix_maxval": "1.0"}
            )
        for piece in self._resampler.resample(frame):
            self._keep(piece)

    def _keep(self, piece: Any) -> None:
        data = memoryview(bytes(piece.planes[0]))[: 4 * piece.samples]
        drop = min(self._skip, piece.samples)
        self._skip -= drop
        if drop < piece.samples:
            self._kept.append((self.position, data[4 * drop :]))
            self.position += piece.samples - drop

    def take(self, before: float) -> Iterator[tuple[int, memoryview]]:
        """Samples whose time is before `before`."""
        stop = math.inf if before == math.inf else math.ceil(before * self.rate)
        while self._kept and self._kept[0][0] < stop:
            first, data = self._kept.popleft()
            count = len(data) // 4
            if first + count > stop:
                cut = int(stop) - first
                self._kept.appendleft((first + cut, data[4 * cut :]))
                data = data[: 4 * cut]
            yield first, data


class Sounds:
    """Mono sound of a file at each rate asked for. `origin` is the file's time 0 on its own clock."""

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
        self._lanes = {rate: Lane(rate) for rate in {need.rate for need in needs.values()}}
        self._clock = Clock(container, stream, 0.02)
        self._frames: Iterator[Any] = decoded(container, stream)
        self._shape: object = None
        self._run_end = -math.inf
        self._shift = 0.0
        self._ahead: Any = next(self._frames, None)
        self.found = self._ahead is not None
        self.done = not self.found
        self.end = 0.0
        if self._ahead is not None:
            first = self._clock.time(self._ahead)
            if origin is not None:
                self._shift = self._clock.origin - origin
            self.sample_rate = self._ahead.sample_rate
            self._place(first)

    def _place(self, time: float) -> None:
        """Decide where the frame ahead goes: right after the last one, or elsewhere as a new run."""
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
                for lane in self._lanes.values():
                    lane.drain()
                self.done = True
            elif self._new_run:
                for lane in self._lanes.values():
                    lane.drain()
                    lane.silence(min(self._ahead_time, until))
            if self.done or self._ahead_time >= until:
                break
            for lane in self._lanes.values():
                lane.feed(self._ahead, self._ahead_time)
            self._ahead = next(self._frames, None)
            if self._ahead is not None:
                self._place(self._clock.time(self._ahead))
        self.end = max((lane.position / lane.rate for lane in self._lanes.values()), default=0.0)
        self.flush(window_end)

    def flush(self, before: float) -> None:
        """Hand out all samples before a time, one message a rate and need."""
        for rate, lane in self._lanes.items():
            for first, data in lane.take(before):
                for index, need in self._needs.items():
                    if need.rate == rate:
                        self._emit(index, first, data)
