"""Hits as an edit decision list (CMX 3600), one event after the other.

Timecodes do not drop frames: they number the frames of a file from 00:00:00:00, at 29.97 frames a second as
at 30. Times of the sources count in the rate of each file, those of the record in the rate of most of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from wordreel.errors import QueryError
from wordreel.search.hit_lists.moments import ListedMoment, timeline_rate

MAX_EVENTS = 999
FIRST = 3600  # seconds of timecode at which the record begins
REEL = "AX"  # a source that is a file, not a tape


def edl(moments: Sequence[ListedMoment]) -> str:
    """The list as text.

    Raises:
        QueryError: There are more moments than an EDL can number.
    """
    if len(moments) > MAX_EVENTS:
        raise QueryError(
            f"an EDL holds {MAX_EVENTS} moments, not {len(moments)}; ask for fewer hits", field="limit"
        )
    rate = timeline_rate(moments)
    lines = ["TITLE: wordreel", "FCM: NON-DROP FRAME", ""]
    at = FIRST * base_of(rate)
    for number, moment in enumerate(moments, start=1):
        first, last = frame_at(moment.start, moment.rate), frame_at(moment.end, moment.rate)
        last = max(last, first + 1)
        length = max(1, frame_at(moment.end - moment.start, rate))
        source = f"{timecode(first, moment.rate)} {timecode(last, moment.rate)}"
        record = f"{timecode(at, rate)} {timecode(at + length, rate)}"
        lines.append(f"{number:03d}  {REEL:<8} {_channels(moment):<5} C        {source} {record}")
        lines.append(f"* FROM CLIP NAME: {moment.name}")
        lines.append(f"* SOURCE FILE: {moment.address}")
        if moment.comment:
            lines.append(f"* COMMENT: {moment.comment}")
        at += length
    return "\r\n".join(lines) + "\r\n"


def _channels(moment: ListedMoment) -> str:
    if not moment.pictures:
        return "A"
    return "B" if moment.sound else "V"


def base_of(rate: Fraction) -> int:
    """The frames in one second of timecode."""
    return max(1, round(rate))


def frame_at(seconds: float, rate: Fraction) -> int:
    """The number of the frame nearest to a time.

    >>> frame_at(10.01, Fraction(30000, 1001))
    300
    """
    return math.floor(seconds * rate + Fraction(1, 2))


def timecode(frame: int, rate: Fraction) -> str:
    """A frame's number as hours, minutes, seconds and frames, none dropped.

    >>> timecode(1800, Fraction(30000, 1001)), timecode(25 * 3600 + 7, Fraction(25))
    ('00:01:00:00', '01:00:00:07')
    """
    base = base_of(rate)
    seconds, frames = divmod(frame, base)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours % 100:02d}:{minutes:02d}:{seconds:02d}:{frames:02d}"
