"""Ranks and figures of captioned video sets, by the published protocols.

Captions stand grouped by video: a rectangle of `captions` for each video, or a count per video. A mask drops
captions that are only filling.

Text to video: a caption looks for its video, among all videos. Video to text: a video looks for its captions,
by one of two protocols whose numbers cannot be compared:

- `ce` (MoEE, CE, MMT, TeachText, QB-Norm): the least rank of its captions among all valid captions;
- `clip` (CLIP4Clip and what came from it): a group of captions scores as its best caption does, and the rank
  is that of the video's own group among the groups.

A video without a valid caption asks nothing and, as a group, cannot be retrieved. For one caption per
video the two are the same.

Everything is read in blocks: one pass, no sorting and no copy of the matrix.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from wordreel.errors import EvaluationError, HubnessError
from wordreel.retrieval.metrics import RetrievalMetrics, retrieval_metrics
from wordreel.retrieval.ranks import ranks_against, ranks_of
from wordreel.types import Array, Bool, Float64, Int64

Protocol = Literal["ce", "clip"]

BLOCK = 1 << 19  # similarities looked at together: they stay in a core's caches


@dataclass(frozen=True)
class Captions:
    """Which video each caption belongs to, and which captions are valid: `owner [captions]`, `valid`."""

    videos: int
    owner: Int64
    valid: Bool

    def __len__(self) -> int:
        return len(self.owner)


def arrange(videos: int, captions: int, counts: Array | None = None, mask: Array | None = None) -> Captions:
    """Arrange neighbouring captions by video: as many for each, or `counts [videos]` of them.

    `mask` has one value per caption in any shape, 1 for the valid ones.

    >>> arrange(2, 6, mask=np.array([[1, 1, 0], [1, 0, 0]])).owner.tolist()
    [0, 0, 0, 1, 1, 1]
    """
    if counts is None:
        if videos == 0 or captions == 0 or captions % videos:
            raise HubnessError(
                f"{captions} captions cannot be shared out evenly between {videos} videos; say how many "
                "captions each video has (--counts)"
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


def text_to_video(similarities: Array, captions: Captions) -> RetrievalMetrics:
    """Measure `similarities [captions, videos]` for captions that look for their video.

    >>> text_to_video(np.zeros((6, 6)), arrange(6, 6)).median_rank
    3.5
    """
    return retrieval_metrics(text_to_video_ranks(similarities, captions))


def video_to_text(similarities: Array, captions: Captions, *, protocol: Protocol = "ce") -> RetrievalMetrics:
    """Measure `similarities [captions, videos]` for videos that look for their captions.

    >>> same = np.zeros((12, 6))
    >>> video_to_text(same, arrange(6, 12)).median_rank
    6.5
    >>> video_to_text(same, arrange(6, 12), protocol="clip").median_rank
    3.5
    """
    return retrieval_metrics(video_to_text_ranks(similarities, captions, protocol=protocol))


def text_to_video_ranks(similarities: Array, captions: Captions) -> Float64:
    """Return the rank of each caption's video `[captions]`; NaN for captions that are not valid."""
    blocks = row_blocks(_checked(similarities, captions))
    ranks = np.concatenate([ranks_of(rows, captions.owner[span]) for span, rows in blocks])
    return np.where(captions.valid, ranks, np.nan)


def video_to_text_ranks(similarities: Array, captions: Captions, *, protocol: Protocol = "ce") -> Float64:
    """Return the rank of each video's best caption or own group `[videos]`.

    NaN for videos without a valid caption.
    """
    if protocol not in ("ce", "clip"):
        raise EvaluationError(f"video-to-text protocols are ce and clip, not {protocol!r}")
    valid, owner = captions.valid, captions.owner[captions.valid]
    ranks = np.empty(captions.videos)
    for span, rows in row_blocks(_checked(similarities, captions).T):
        shown = rows if valid.all() else rows[:, valid]
        ranks[span] = best_own_ranks(shown, owner, span.start, grouped=protocol == "clip")
    return ranks


def best_own_ranks(rows: Array, owner: Int64, first: int = 0, *, grouped: bool = False) -> Float64:
    """Least rank of the columns that belong to each row; NaN for a row without any.

    Row i is video `first + i`. `owner` is in order, so own columns are neighbours. The least rank is that of
    the largest own score, because a larger score never has a larger rank. If `grouped`, the columns of one
    owner are one, which scores as the best of them.
    """
    if grouped:
        owner, groups = np.unique(owner, return_index=True)
        rows = np.fmax.reduceat(rows, groups, axis=1)
    numbers = np.arange(first, first + len(rows))
    starts, ends = np.searchsorted(owner, numbers), np.searchsorted(owner, numbers, side="right")
    has = starts < ends
    best = np.zeros((len(rows), 1), rows.dtype)
    for row in np.flatnonzero(has):
        best[row] = np.fmax.reduce(rows[row, starts[row] : ends[row]])
    return np.where(has, ranks_against(rows, best), np.nan)


def row_blocks(matrix: Array, size: int = BLOCK) -> Iterator[tuple[slice, Array]]:
    """Yield views of some rows at a time, of about `size` numbers."""
    step = max(1, size // max(1, matrix.shape[1]))
    for start in range(0, len(matrix), step):
        yield slice(start, min(start + step, len(matrix))), matrix[start : start + step]


def _checked(similarities: Array, captions: Captions) -> Array:
    """Return the plain array, since slices of a mapped one are slow to make; nothing is copied."""
    shape = (len(captions), captions.videos)
    if similarities.shape != shape:
        raise EvaluationError(
            f"similarities of {shape[0]} captions and {shape[1]} videos are a {list(shape)} matrix, "
            f"not {list(similarities.shape)}"
        )
    if (np.diff(captions.owner) < 0).any():
        raise EvaluationError("the captions of one video must stand together, in the order of the videos")
    return np.asarray(similarities)
