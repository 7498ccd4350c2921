"""Which items overlap some moments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from wordreel.catalogue.paths import VERIFY
from wordreel.errors import LibraryError
from wordreel.search.segments import distinct, take_segments
from wordreel.types import Int64

if TYPE_CHECKING:
    from wordreel.search.snapshot import LibrarySnapshot


def overlapping_rows(
    snapshot: LibrarySnapshot,
    videos: Int64,
    starts: Sequence[float],
    ends: Sequence[float],
    wholes: bool = True,
) -> Int64:
    """The rows of the items that overlap some moments of `videos`, by number, each once, in order.

    A whole video overlaps all of its moments; without `wholes` it counts only where it has no clips.
    """
    order, edges = snapshot.segments
    at, known = snapshot.video_places(videos)
    at = at[known]
    try:
        first, last = (np.array(times, np.float64)[known] for times in (starts, ends))
    except ValueError as error:
        raise LibraryError(f"the times of some words are damaged ({error})", VERIFY) from None
    # The rows of each moment's video, one after the other: moment `of[i]` may overlap item `rows[i]`.
    rows, _ = take_segments(order, edges, at)
    sizes = edges[at + 1] - edges[at]
    of = np.repeat(np.arange(len(at)), sizes)
    clips = snapshot.columns.clips[rows]
    overlaps = (first[of] < clips["end"]) & (last[of] > clips["start"])
    whole = clips["whole"] != 0
    chosen = overlaps | whole if wholes else (overlaps & ~whole) | (whole & (sizes[of] == 1))
    return distinct(rows[chosen])


def video_numbers(snapshot: LibrarySnapshot, contents: Sequence[str]) -> Int64:
    """The number of each content's video, -1 where there is none; contents may come many times."""
    each = list(dict.fromkeys(contents))
    number = dict(zip(each, snapshot.columns.numbers(each).tolist(), strict=True))
    return np.array([number[content] for content in contents], np.int64)
