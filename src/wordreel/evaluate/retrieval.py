"""The figures of captioned video sets, as the collaborative-experts family of papers counts them.

Captions stand grouped by video: a rectangle of `captions` for each video, or a count per video. A mask drops
captions that are only filling. Ranks count from 0, and equal scores share the mean of their places:

    rank₀ = |{v : s(v) > s(right)}| + (|{v : s(v) = s(right)}| − 1) / 2

Text to video: a caption's rank₀ is that of its video. Video to text: that of its best caption among all valid
captions; a video without a valid caption asks nothing. R@1 is the share of rank₀ = 0, so a tie at the top
does not count; R@K for K > 1 that of rank₀ < K. Median and mean are of rank₀ + 1.

Everything is read in blocks of rows, one pass, no sorting and no copy of the matrix.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordreel.errors import HubnessError
from wordreel.evaluate.ranks import ranks_against, ranks_of
from wordreel.types import Bool, Float64

Array = NDArray[Any]
Ids = NDArray[np.int64]

BLOCK = 1 << 19  # similarities looked at together: they stay in a core's caches


@dataclass(frozen=True)
class Figures:
    """Recall in per cent, median and mean rank, and the geometric mean of R@1, R@5 and R@10."""

    R1: float
    R5: float
    R10: float
    R50: float
    MdR: float
    MnR: float
    Geom: float


@dataclass(frozen=True)
class Captions:
    """Which video each caption belongs to, and which captions are valid: `owner [captions]`, `valid`."""

    videos: int
    owner: Ids
    valid: Bool

    def __len__(self) -> int:
        return len(self.owner)


def arrange(videos: int, captions: int, counts: Array | None = None, mask: Array | None = None) -> Captions:
    """Neighbouring captions belong to one video: as many for each, or `counts [videos]` of them.

    `mask` has one value per caption in any shape, 1 for the valid ones.

    >>> arrange(2, 6, mask=np.array([[1, 1, 0], [1, 0, 0]])).owner.tolist()
    [0, 0, 0, 1, 1, 1]
    """
    if counts is None:
        if videos == 0 or captions == 0 or captions % videos:
            raise HubnessError(
                f"{captions} captions cannot be shared out evenly between {videos} videos; say how many "
                "captions each video has (--captions)"
            )
        counts = np.full(videos, captions // videos)
    counts = np.asarray(counts).ravel()
    if counts.dtype.kind not in "iuf" or (counts % 1 != 0).any():
        raise HubnessError(f"the caption counts must be whole numbers, not {counts.dtype}")
    possible = ((counts >= 0) & (counts <= captions)).all()
    if len(counts) != videos or not possible or int(counts.sum()) != captions:
        raise HubnessError(
            f"the caption counts must be {videos} numbers, one per video, that add up to {captions}; there "
            f"are {len(counts)} that add up to {counts.sum():g}"
        )
    valid = np.ones(captions, bool) if mask is None else np.asarray(mask).ravel()
    if valid.dtype.kind not in "buif" or not np.isin(valid, (0, 1)).all():
        raise HubnessError("a query mask holds only 1 (a caption) and 0 (filling)")
    if len(valid) != captions:
        raise HubnessError(f"the query mask has {len(valid)} values for {captions} captions")
    if not valid.any():
        raise HubnessError("the query mask leaves no caption; nothing can be measured")
    return Captions(videos, np.repeat(np.arange(videos), counts.astype(np.int64)), valid.astype(bool))


def text_to_video(similarities: Array, captions: Captions) -> Figures:
    """Figures of `similarities [captions, videos]` for captions that look for their video.

    >>> text_to_video(np.zeros((6, 6)), arrange(6, 6)).MdR
    3.5
    """
    _check(similarities, len(captions), captions.videos)
    ranks = [
        ranks_of_columns(rows, captions.owner[span])[captions.valid[span]]
        for span, rows in row_blocks(similarities)
    ]
    return figures(np.concatenate(ranks))


def video_to_text(similarities: Array, captions: Captions) -> Figures:
    """Figures of `similarities [captions, videos]` for videos that look for one of their captions.

    >>> video_to_text(np.zeros((12, 6)), arrange(6, 12)).MdR
    6.5
    """
    _check(similarities, len(captions), captions.videos)
    owner = captions.owner[captions.valid]
    ranks = []
    for span, rows in row_blocks(similarities.T):
        shown = np.ascontiguousarray(rows if captions.valid.all() else rows[:, captions.valid])
        ranks.append(ranks_of_own(shown, owner, span.start))
    return figures(np.concatenate(ranks))


def ranks_of_columns(rows: Array, right: Ids) -> Float64:
    """rank₀ of column `right[i]` in each row.

    >>> ranks_of_columns(np.array([[0.1, 0.9, 0.9]]), np.array([1])).tolist()
    [0.5]
    """
    return ranks_of(rows, right) - 1


def ranks_of_own(rows: Array, owner: Ids, first: int = 0) -> Float64:
    """Least rank₀ of the columns that belong to each row; NaN for a row without any.

    Row i is video `first + i`. `owner` is in order, so own columns are neighbours. The least rank is that of
    the largest own score, because a larger score never has a larger rank.
    """
    numbers = np.arange(first, first + len(rows))
    starts, ends = np.searchsorted(owner, numbers), np.searchsorted(owner, numbers, side="right")
    has = starts < ends
    best = np.zeros((len(rows), 1), rows.dtype)
    for row in np.flatnonzero(has):
        best[row] = rows[row, starts[row] : ends[row]].max()
    return np.where(has, ranks_against(rows, best) - 1, np.nan)


def figures(ranks: Float64) -> Figures:
    """Average rank₀ over queries; NaN stands for a query without a right answer, which does not count.

    >>> figures(np.array([0.0, 4.5, 20.0, 60.0])).R5
    50.0
    """
    ranks = ranks[~np.isnan(ranks)]
    if len(ranks) == 0:
        raise HubnessError("no query has a right answer; nothing can be measured")
    r1 = 100 * float(np.mean(ranks == 0))
    r5, r10, r50 = (100 * float(np.mean(ranks < k)) for k in (5, 10, 50))
    geometric = float(np.cbrt(r1 * r5 * r10))
    return Figures(r1, r5, r10, r50, float(np.median(ranks)) + 1, float(np.mean(ranks)) + 1, geometric)


def row_blocks(matrix: Array, size: int = BLOCK) -> Iterator[tuple[slice, Array]]:
    """Views of some rows at a time, of about `size` numbers."""
    step = max(1, size // max(1, matrix.shape[1]))
    for start in range(0, len(matrix), step):
        yield slice(start, min(start + step, len(matrix))), matrix[start : start + step]


def _check(similarities: Array, captions: int, videos: int) -> None:
    if similarities.shape != (captions, videos):
        raise HubnessError(
            f"similarities of {captions} captions and {videos} videos are a [{captions}, {videos}] matrix, "
            f"not {list(similarities.shape)}"
        )
