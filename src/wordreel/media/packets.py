"""Decode packets to frames, skipping damage within reason and frames that no sample needs."""

from __future__ import annotations

import bisect
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from wordreel.errors import BrokenMedia

IsDisplayed = Callable[[int, int | None], bool]
"""Whether a frame on display from one stamp to another (None: the end) is needed by any sample."""

_BAD_LIMIT = 500
"""Packets that fail to decode before the rest of a stream is skipped."""
_DEMUX_ERROR = 50
"""What a failure of the demuxer counts in packets; it may find its way again further on."""
_LOOKAHEAD = 24
"""Packets looked at before one is decoded; more than codecs ever reorder by."""


def decode_frames(container: Any, stream: Any, displayed: IsDisplayed | None = None) -> Iterator[Any]:
    """Yield the frames of one stream in order of display.

    A stream that breaks off simply ends here: what came before counts. With `displayed`, frames that no
    sample needs may be left out when no other frame depends on them, which saves their decoding.

    On a device every error is raised: whether the file or the driver is at fault shows in software.
    """
    import av

    context = stream.codec_context
    if context.is_hwaccel:
        yield from _decode_on_device(container, stream, displayed)
        return
    bad = 0
    for packet, needed in _with_lookahead(read_packets(container, stream), displayed):
        try:
            if displayed is not None:
                context.skip_frame = "DEFAULT" if needed else "NONREF"
            yield from packet.decode()
        except (av.error.MemoryError, MemoryError):
            raise
        except av.error.EOFError:
            break
        except (av.FFmpegError, ValueError):
            bad += 1
            if bad > _BAD_LIMIT:
                return
    try:
        # After an orderly end this only says so; after any other the last frames are still inside.
        yield from context.decode(None)
    except (av.error.MemoryError, MemoryError):
        raise
    except (av.FFmpegError, ValueError):
        return


def _decode_on_device(container: Any, stream: Any, displayed: IsDisplayed | None) -> Iterator[Any]:
    context = stream.codec_context
    for packet, needed in _with_lookahead(read_packets(container, stream), displayed):
        if displayed is not None:
            context.skip_frame = "DEFAULT" if needed else "NONREF"
        for frame in packet.decode():
            if frame.is_corrupt:
                raise BrokenMedia("a frame came damaged from the device")
            yield frame


def read_packets(container: Any, stream: Any) -> Iterator[Any]:
    """Yield all packets of a stream, the empty one that flushes the decoder last."""
    import av

    bad = 0
    while True:
        try:
            yield from container.demux(stream)
            return
        except (av.error.MemoryError, MemoryError):
            raise
        except (av.error.EOFError, IndexError):
            # IndexError: PyAV cannot flush streams that came up only on the way.
            return
        except (av.FFmpegError, ValueError):
            bad += _DEMUX_ERROR
            if bad > _BAD_LIMIT:
                return


def _with_lookahead(packets: Iterator[Any], displayed: IsDisplayed | None) -> Iterator[tuple[Any, bool]]:
    """Each packet with whether its frame is needed.

    A frame is on display until the next stamp in order of display. Of the packets read so far the
    nearest later stamp is never earlier than the true one, so looking ahead too little only makes a
    frame seem on display for longer: it errs towards decoding.
    """
    if displayed is None:
        for packet in packets:
            yield packet, True
        return
    waiting: deque[Any] = deque()
    stamps: deque[int] = deque()  # of packets that left, still of use to those waiting
    order: list[int] = []

    def leave() -> tuple[Any, bool]:
        packet = waiting.popleft()
        if packet.pts is None:
            return packet, True
        at = bisect.bisect_right(order, packet.pts)
        needed = displayed(packet.pts, order[at] if at < len(order) else None)
        stamps.append(packet.pts)
        if len(stamps) > _LOOKAHEAD:
            order.pop(bisect.bisect_left(order, stamps.popleft()))
        return packet, needed

    for packet in packets:
        waiting.append(packet)
        if packet.pts is not None:
            bisect.insort(order, packet.pts)
        if len(waiting) > _LOOKAHEAD:
            yield leave()
    while waiting:
        yield leave()


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
        """Return the seconds from the first frame to a stamp yet to come.

        None if that cannot be predicted.
        """
        if self._first is None or self._shift or self._disorder:
            return None
        return (stamp - self._first) * self._numerator / self._denominator

    def duration(self, frame: Any) -> float:
        """Return how long a frame is displayed according to itself; 0 if unknown."""
        return max(0, frame.duration or 0) * self._numerator / self._denominator

    def jump(self) -> None:
        """Forget the previous frame: the next one comes from a seek."""
        self._started = False
        self._shift = 0.0

    def time(self, frame: Any) -> float:
        """Return seconds since the first frame."""
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
