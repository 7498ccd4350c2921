"""Which items overlap some moments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from wordreel.errors import LibraryError
from wordreel.library.paths import VERIFY
from wordreel.search.segments import take_segments
from wordreel.types import Int64

if TYPE_CHECKING:
    from wordreel.search.snapshot import LibrarySnapshot


class ContentSpan(Protocol):
    """Seconds of a content: a line of words, a tagged moment, a face."""

    @property
    def content(self) -> str: ...
    @property
    def start(self) -> float: ...
    @property
    def end(self) -> float: ...


def overlapping_rows(snapshot: LibrarySnapshot, spans: Sequence[ContentSpan], wholes: bool = True) -> Int64:
    """The rows of the items that overlap some of these moments, each once, in order.

    A whole video overlaps all of its moments; without `wholes` it counts only where it has no clips.
    """
    numbers = snapshot.columns.numbers([span.content for span in spans])
    order, starts = snapshot.segments
    at = np.searchsorted(snapshot.video_numbers, numbers)
    known = at < len(snapshot.video_numbers)
    known[known] = snapshot.video_numbers[at[known]] == numbers[known]
    at = at[known]
    try:
        times = np.array([(span.start, span.end) for span in spans], np.float64).reshape(-1, 2)[known]
    except ValueError as error:
        raise LibraryError(f"the times of some words are damaged ({error})", VERIFY) from None
    # The rows of each moment's video, one after the other: moment `of[i]` may overlap item `rows[i]`.
    rows, _ = take_segments(order, starts, at)
    sizes = starts[at + 1] - starts[at]
    of = np.repeat(np.arange(len(at)), sizes)
    clips = snapshot.columns.clips[rows]
    overlaps = (times[of, 0] < clips["end"]) & (times[of, 1] > clips["start"])
    whole = clips["whole"] != 0
    chosen = overlaps | whole if wholes else (overlaps & ~whole) | (whole & (sizes[of] == 1))
    return np.unique(rows[chosen])
