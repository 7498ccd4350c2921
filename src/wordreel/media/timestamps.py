"""Timestamps of a stream as seconds that never run backwards."""

from __future__ import annotations

from typing import Any

_RESET = 1.0
"""A step back of more than this many seconds is a clock reset, not disorder."""
_LEAP = 30.0
_BROADCAST = {"mpegts", "mpeg", "flv"}
"""Containers whose stamps come with every packet: there a leap of 30 s is damage or a new clock. Elsewhere
an index holds all stamps together, and a picture may well stay for minutes."""


class StreamClock:
    """Converts frames to seconds since the first frame of the stream.

    t = (pts - first pts) * time base, in one division, so that a time such as 1/3 s rounds to the same
    double as `k / rate` does and frames on the sampling grid are met exactly. Frames without a stamp
    follow the one before by `step`. A clock reset (joined recordings) continues from where it was.
    """

    def __init__(self, container: Any, stream: Any, step: float) -> None:
        self._leap = _LEAP if container.format.name in _BROADCAST else float("inf")
        base = stream.time_base
        self._numerator: int = base.numerator if base else 1
        self._denominator: int = base.denominator if base else 1000
        self._first: int | None = None
        self._shift = 0.0
        self.step = step
        self.last = 0.0
        self._started = False
        self._disorder = False

    @property
    def origin(self) -> float:
        """The first stamp, in seconds of the container's own clock."""
        return (self._first or 0) * self._numerator / self._denominator

    def stamp(self, seconds: float) -> int:
        """Return the stream's own stamp for a time, for seeking."""
        return (self._first or 0) + int(seconds * self._denominator / self._numerator)

    def since(self, stamp: int) -> float | None:
        """Seconds since the first frame of a stamp yet to come; None if that cannot be predicted."""
        if self._first is None or self._shift or self._disorder:
            return None
        return (stamp - self._first) * self._numerator / self._denominator

    def duration(self, frame: Any) -> float:
        """How long a frame is displayed according to itself; 0 if unknown."""
        return max(0, frame.duration or 0) * self._numerator / self._denominator

    def jump(self) -> None:
        """Forget the previous frame: the next one comes from a seek."""
        self._started = False
        self._shift = 0.0

    def time(self, frame: Any) -> float:
        """Seconds since the first frame."""
        stamp = frame.pts if frame.pts is not None else frame.dts
        if stamp is None:
            now = self.last + self.step if self._started else 0.0
        else:
            if self._first is None:
                self._first = stamp
            now = (stamp - self._first) * self._numerator / self._denominator + self._shift
            if self._started and not self.last - _RESET <= now <= self.last + self._leap:
                self._shift += self.last + self.step - now
                now = self.last + self.step
        if self._started:
            self._disorder = self._disorder or now < self.last
            now = max(now, self.last)
            if now > self.last:
                self.step = min(now - self.last, 10.0)
        self._started = True
        self.last = now
        return now
