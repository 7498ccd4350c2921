"""Cut a video into clips, the items of the gallery: pure functions of times."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from wordreel.media import find_shots
from wordreel.media.types import MediaInfo
from wordreel.types import Absent, Track

SHORTEST = 2.0  # a shot shorter than this joins a neighbour
LONGEST = 20.0  # a shot longer than this is cut ...
PIECE = 10.0  # ... into equal pieces no longer than this

SHOTS_EXPERT = "shots"  # the expert whose track says where shots begin
FEATURES = "features"  # the container of items imported without a file: they have one clip

Span = tuple[float, float]


@dataclass(frozen=True)
class ClipBounds:
    """A clip before it has an id. `shot` is the index of the (merged) shot it lies in, -1 without shots."""

    start: float
    end: float
    whole: bool = False
    shot: int = -1


def cut_clips(info: MediaInfo, shots: Sequence[Span] | None) -> list[ClipBounds]:
    """Return the whole video first, then its moments in order, which cover it without gap or overlap.

    >>> cut_clips(MediaInfo("video", "mp4", 30.0), [(0.0, 1.0), (1.0, 8.0), (8.0, 30.0)])[1]
    ClipBounds(start=0.0, end=8.0, whole=False, shot=0)
    """
    end = info.duration
    whole = ClipBounds(0.0, end, whole=True)
    if info.kind == "image" or end <= 0:
        return [ClipBounds(0.0, 0.0, whole=True)]
    if info.container == FEATURES:
        return [whole]
    if info.kind == "video" and shots:
        merged = merge_short(_covering(shots, end), SHORTEST)
        pieces = [
            ClipBounds(*part, shot=number)
            for number, span in enumerate(merged)
            for part in split_long(span, LONGEST, PIECE)
        ]
    else:
        longest = PIECE if info.kind == "audio" else LONGEST
        pieces = [ClipBounds(*part) for part in split_long((0.0, end), longest, PIECE)]
    return [whole] if len(pieces) == 1 else [whole, *pieces]


def shots_of(track: Track | Absent | None, end: float) -> list[Span] | None:
    """Return the shots of a video of `end` seconds from the track of the shots expert; None without one."""
    if not isinstance(track, Track):
        return None
    return list(find_shots(track.values, track.times[:, 0], end))


def merge_short(spans: Sequence[Span], shortest: float) -> list[Span]:
    """Join every span shorter than `shortest` to the one after it, and a short last one to the one before.

    >>> merge_short([(0, 5), (5, 6), (6, 6.5), (6.5, 9), (9, 10)], 2.0)
    [(0, 5), (5, 10)]
    """
    joined: list[Span] = []
    for start, end in spans:
        if joined and joined[-1][1] - joined[-1][0] < shortest:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    if len(joined) > 1 and joined[-1][1] - joined[-1][0] < shortest:
        joined[-2:] = [(joined[-2][0], joined[-1][1])]
    return joined


def split_long(span: Span, longest: float, piece: float) -> list[Span]:
    """Cut a span longer than `longest` into equal parts of at most `piece`; neighbours share their edge."""
    start, end = span
    if end - start <= longest:
        return [span]
    count = math.ceil((end - start) / piece - 1e-9)
    edges = [start + (end - start) * i / count for i in range(count)] + [end]
    return list(pairwise(edges))


def _covering(shots: Sequence[Span], end: float) -> list[Span]:
    """Shots that tile `[0, end]`: only their starts are trusted."""
    starts = sorted({0.0, *(float(s) for s, _ in shots if 0.0 < s < end)})
    return list(zip(starts, [*starts[1:], end], strict=True))
