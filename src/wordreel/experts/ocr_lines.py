"""From what is read in each frame to what stood on screen, from when to when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from wordreel.experts.ocr_read import Line
from wordreel.types import Words

ALIKE = 0.8


@dataclass(frozen=True)
class Stretch:
    """A time during which the same lines were to be seen; `text` is all of them, top to bottom."""

    text: str
    start: float
    end: float


def is_same_line(one: str, other: str) -> bool:
    """Whether two readings are of one line: most characters agree, and every digit does.

    >>> is_same_line("Welcome to", "Welcometo"), is_same_line("lap 3 of 8", "lap 4 of 8")
    (True, False)
    """
    a, b = plain(one), plain(other)
    if [c for c in a if c.isdigit()] != [c for c in b if c.isdigit()]:
        return False
    return a == b or SequenceMatcher(None, a, b, autojunk=False).ratio() >= ALIKE


def plain(text: str) -> str:
    """Letters and digits alone, without case: what two readings of a line should agree on."""
    return "".join(c for c in text.casefold() if c.isalnum())


def follow(
    frames: Sequence[tuple[Line, ...]], times: Sequence[float], period: float
) -> tuple[list[Words], list[Stretch]]:
    """Each line once for as long as it stays, in its surest reading, and the stretches between changes.

    A line of a frame continues the first line of the frame before that reads the same and is not yet
    taken. `frames[i]` is what is read at `times[i]` and stands until `times[i] + period`.
    """
    lines: list[list[tuple[Line, float]]] = []  # every line: its readings and their times
    shown: list[list[int]] = []  # every frame: which lines, top to bottom
    for read, time in zip(frames, times, strict=True):
        waiting = list(shown[-1]) if shown else []
        now: list[int] = []
        for line in read:
            same = (i for i in waiting if is_same_line(lines[i][-1][0].text, line.text))
            which = next(same, None)
            if which is None:
                which = len(lines)
                lines.append([])
            else:
                waiting.remove(which)
            lines[which].append((line, time))
            now.append(which)
        shown.append(now)
    words = [_word(readings, period) for readings in lines]
    return words, _stretches(shown, [word.text for word in words], times, period)


def _word(readings: list[tuple[Line, float]], period: float) -> Words:
    best = max((line for line, _ in readings), key=lambda line: line.score)
    return Words(best.text, readings[0][1], readings[-1][1] + period, best.score)


def _stretches(
    shown: list[list[int]], texts: list[str], times: Sequence[float], period: float
) -> list[Stretch]:
    found: list[Stretch] = []
    last: set[int] = set()
    for now, time in zip(shown, times, strict=True):
        if now and set(now) == last:
            found[-1] = Stretch(found[-1].text, found[-1].start, time + period)
        elif now:
            found.append(Stretch(" ".join(texts[i] for i in now), time, time + period))
        last = set(now)
    return found
