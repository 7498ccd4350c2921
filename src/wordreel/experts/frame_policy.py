"""Which frames of a video are looked at: by shots and time, not so many a second.

A chunk of a video arrives as candidates, frames at a fixed rate with descriptors of `media.shot_detection`.
It is cut into stretches: its shots, and of a long one equal parts, the more of them the more the picture
changes. The middle frame of a stretch stands for all of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

from wordreel.media.shot_detection import difference, find_shots
from wordreel.types import Float32, Float64

Stretch = tuple[int, int]
"""The first candidate of a stretch and the first after it."""


@dataclass(frozen=True)
class FramePolicy:
    """Every number that decides how many frames are looked at. Seconds, unless it says otherwise."""

    rate: float = 2.0  # candidates a second
    calm: float = 4.0  # the longest stretch of a shot whose picture hardly changes ...
    busy: float = 2.0  # ... and of one whose picture does
    change: float = 0.1  # mean difference between candidates from which on a shot is busy
    shortest_shot: float = 1.0
    opening: int = 6  # least stretches of a video's first chunk, and so of a short video
    per_minute: float = 40.0  # most stretches beyond these


POLICY = FramePolicy()


def stretches(descriptors: Float32, times: Float64, policy: FramePolicy = POLICY) -> list[Stretch]:
    """Cut candidates into stretches, which cover them all in order; at least one, if there are any.

    >>> import numpy as np
    >>> stretches(np.zeros((20, 136), np.float32), np.arange(20) / 2 + 30)
    [(0, 6), (6, 13), (13, 20)]
    """
    count = len(times)
    if count == 0:
        return []
    seconds = count / policy.rate
    cuts = [
        round(start * policy.rate)
        for start, _ in find_shots(descriptors, times - times[0], seconds, policy.shortest_shot)
    ]
    shots = list(pairwise([*dict.fromkeys(min(cut, count - 1) for cut in cuts), count]))
    parts = [_parts(descriptors[first:end], policy) for first, end in shots]
    least = policy.opening if times[0] == 0 else 1
    _raise_to(least, shots, parts)
    found = [stretch for shot, number in zip(shots, parts, strict=True) for stretch in _split(shot, number)]
    return _merged(found, max(least, math.ceil(policy.per_minute * seconds / 60)))


def middle(stretch: Stretch) -> int:
    """Return the candidate that stands for a stretch.

    Not its first, in which the shot before may still fade out.
    """
    return sum(stretch) // 2


def _parts(descriptors: Float32, policy: FramePolicy) -> int:
    """How many stretches a shot is cut into."""
    changes = difference(descriptors[:-1], descriptors[1:])
    busy = len(changes) > 0 and float(changes.mean()) >= policy.change
    longest = policy.rate * (policy.busy if busy else policy.calm)
    return max(1, math.ceil(len(descriptors) / longest))


def _raise_to(least: int, shots: list[Stretch], parts: list[int]) -> None:
    """Cut the shots with the longest stretches into more of them, while there are candidates."""

    def longest(number: int) -> float:
        first, end = shots[number]
        return (end - first) / parts[number]

    while sum(parts) < least:
        number = max(range(len(shots)), key=longest)
        if longest(number) <= 1:
            return
        parts[number] += 1


def _split(shot: Stretch, parts: int) -> list[Stretch]:
    first, end = shot
    return list(pairwise(first + (end - first) * part // parts for part in range(parts + 1)))


def _merged(found: list[Stretch], most: int) -> list[Stretch]:
    """Join the shortest neighbours until there are no more than `most`."""
    found = list(found)
    while len(found) > most:
        at = min(range(len(found) - 1), key=lambda number: found[number + 1][1] - found[number][0])
        found[at : at + 2] = [(found[at][0], found[at + 1][1])]
    return found
