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

Everything is read in blocks, in the order in which it lies in memory or in a mapped file: one pass, no
sorting and no copy of the matrix.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from wordreel.errors import EvaluationError, HubnessError
from wordreel.retrieval.metrics import RetrievalMetrics, retrieval_metrics
from wordreel.retrieval.ranks import Ties, ranks_against, ranks_down, ranks_of
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
    """Neighbouring captions belong to one video: as many for each, or `counts [videos]` of them.

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


def text_to_video(similarities: Array, captions: Captions, *, ties: Ties = "average") -> RetrievalMetrics:
    """Figures of `similarities [captions, videos]` for captions that look for their video.

    >>> text_to_video(np.zeros((6, 6)), arrange(6, 6)).median_rank
    3.5
    """
    return retrieval_metrics(text_to_video_ranks(similarities, captions, ties=ties))


def video_to_text(
    similarities: Array, captions: Captions, *, protocol: Protocol = "ce", ties: Ties = "average"
) -> RetrievalMetrics:
    """Figures of `similarities [captions, videos]` for videos that look for their captions.

    >>> same = np.zeros((12, 6))
    >>> video_to_text(same, arrange(6, 12)).median_rank
    6.5
    >>> video_to_text(same, arrange(6, 12), protocol="clip").median_rank
    3.5
    """
    return retrieval_metrics(video_to_text_ranks(similarities, captions, protocol=protocol, ties=ties))


def text_to_video_ranks(similarities: Array, captions: Captions, *, ties: Ties = "average") -> Float64:
    """`[captions]` rank of each caption's video; NaN for captions that are not valid."""
    similarities = _checked(similarities, captions)
    if _lies_by_column(similarities):
        own = similarities[np.arange(len(captions)), captions.owner]
        ranks = ranks_down((rows for _, rows in row_blocks(similarities.T)), own, ties)
    else:
        ranks = np.concatenate(
            [ranks_of(rows, captions.owner[span], ties) for span, rows in row_blocks(similarities)]
        )
    return np.where(captions.valid, ranks, np.nan)


def video_to_text_ranks(
    similarities: Array, captions: Captions, *, protocol: Protocol = "ce", ties: Ties = "average"
) -> Float64:
    """`[videos]` rank of each video's best caption or own group; NaN for videos without a valid caption."""
    if protocol not in ("ce", "clip"):
        raise EvaluationError(f"video-to-text protocols are ce and clip, not {protocol!r}")
    similarities = _checked(similarities, captions)
    grouped = protocol == "clip"
    valid = np.flatnonzero(captions.valid)
    owner = captions.owner[valid]
    videos, starts = np.unique(owner, return_index=True)
    # A larger score never has a larger rank, so the least rank is that of the largest own score.
    own = np.zeros(captions.videos, similarities.dtype)
    own[videos] = np.fmax.reduceat(similarities[valid, owner], starts)
    if _lies_by_column(similarities):
        ranks = np.empty(captions.videos)
        for span, rows in row_blocks(similarities.T):
            rows_read = rows if captions.valid.all() else rows[:, valid]
            rows_read = np.fmax.reduceat(rows_read, starts, axis=1) if grouped else rows_read
            ranks[span] = ranks_against(rows_read, own[span, None], ties)
    else:
        blocks = _valid_rows(similarities, captions)
        ranks = ranks_down(_groups(blocks) if grouped else (rows for _, rows in blocks), own, ties)
    has = np.zeros(captions.videos, bool)
    has[videos] = True
    return np.where(has, ranks, np.nan)


def _valid_rows(similarities: Array, captions: Captions) -> Iterator[tuple[Int64, Array]]:
    """Blocks of valid captions with their videos."""
    for span, rows in row_blocks(similarities):
        valid = captions.valid[span]
        if valid.all():
            yield captions.owner[span], rows
        elif valid.any():
            yield captions.owner[span][valid], rows[valid]


def _groups(blocks: Iterator[tuple[Int64, Array]]) -> Iterator[Array]:
    """Yield the largest of each group's rows, in blocks; a group may begin in one and end in another."""
    held: Array | None = None
    holder = -1
    for owner, rows in blocks:
        starts = np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]])
        largest = np.fmax.reduceat(rows, starts, axis=0)
        if held is not None and owner[0] == holder:
            np.fmax(largest[0], held, out=largest[0])
        elif held is not None:
            yield held[None]
        yield largest[:-1]
        held, holder = largest[-1], int(owner[-1])
    if held is not None:
        yield held[None]


def best_own_ranks(rows: Array, owner: Int64, first: int = 0) -> Float64:
    """Least rank of the columns that belong to each row; NaN for a row without any.

    Row i is video `first + i`. `owner` is in order, so own columns are neighbours. The least rank is that of
    the largest own score, because a larger score never has a larger rank.
    """
    numbers = np.arange(first, first + len(rows))
    starts, ends = np.searchsorted(owner, numbers), np.searchsorted(owner, numbers, side="right")
    has = starts < ends
    best = np.zeros((len(rows), 1), rows.dtype)
    for row in np.flatnonzero(has):
        best[row] = rows[row, starts[row] : ends[row]].max()
    return np.where(has, ranks_against(rows, best), np.nan)


def row_blocks(matrix: Array, size: int = BLOCK) -> Iterator[tuple[slice, Array]]:
    """Yield views of some rows at a time, of about `size` numbers."""
    step = max(1, size // max(1, matrix.shape[1]))
    for start in range(0, len(matrix), step):
        yield slice(start, min(start + step, len(matrix))), matrix[start : start + step]


def _lies_by_column(matrix: Array) -> bool:
    return abs(matrix.strides[0]) < abs(matrix.strides[1])


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
