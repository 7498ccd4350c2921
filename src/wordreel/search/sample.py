"""A fixed sample of a library's videos, which says what competes for a query without scoring every item.

Of a library of at most `ROWS` items it is everything. Of a larger one it is the videos whose first clip has
the lowest hash, as many as have `ROWS` items together: the same for every query and every process, and nearly
the same after videos come or go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wordreel.index.exact import ExactIndex
from wordreel.search.segments import Scores, segment_argmax, take_segments
from wordreel.types import Float32, Int64

if TYPE_CHECKING:
    from wordreel.search.snapshot import LibrarySnapshot

ROWS = 4_096


@dataclass(frozen=True, eq=False)
class VideoSample:
    """The items `rows [m]` of some videos, video by video, of which each starts at one of `starts`."""

    rows: Int64
    starts: Int64
    index: ExactIndex  # over these rows and experts
    experts: Int64  # those that some item of the sample has, by their place among all
    videos: int  # in the whole library

    def scores(self, vectors: Float32, weights: Float32) -> Float32:
        """Return plain scores `[queries, m]`."""
        return self.index.scores(vectors[:, self.experts], weights[:, self.experts], slice(None))

    def best(self, scores: Scores) -> Int64:
        """Return where in `scores [m]` the best item of each video is, the first of equals.

        The result has the shape `[videos of the sample]`.
        """
        return segment_argmax(scores, self.starts)[1]


def draw_sample(snapshot: LibrarySnapshot, most: int | None = None) -> VideoSample:
    """Return the sample of a snapshot, of at most `ROWS` items or so many."""
    limit = most or ROWS
    order, starts = snapshot.segments
    videos = len(starts) - 1
    rows, first = order, starts[:-1]
    if len(order) > limit:
        sizes = np.diff(starts)
        hashes = mix(np.asarray(snapshot.columns.ids[order[starts[:-1]]]))
        last = min(limit, videos) - 1
        lowest = np.argpartition(hashes, last)[: last + 1]
        lowest = lowest[np.argsort(hashes[lowest])]
        fitting = int(np.searchsorted(np.cumsum(sizes[lowest]), limit, side="right"))
        chosen = np.sort(lowest[: max(1, fitting)])
        rows, first = take_segments(order, starts, chosen)
    gallery = snapshot.gallery
    whole = len(rows) == len(gallery) and bool((rows == np.arange(len(rows))).all())
    available = np.asarray(gallery.available[rows])
    if whole:  # read where it lies
        experts = np.arange(available.shape[1])
        return VideoSample(rows, first, ExactIndex(gallery.vectors, available), experts, videos)
    experts = np.flatnonzero(available.any(axis=0))
    vectors = gallery.vectors[rows[:, None], experts]
    return VideoSample(rows, first, ExactIndex(vectors, available[:, experts]), experts, videos)


def mix(numbers: Int64) -> NDArray[np.uint64]:
    """Hash whole numbers so that every bit counts.

    The finaliser of SplitMix64 (Steele et al., 2014).

    >>> [hex(value) for value in mix(np.array([0, 1])).tolist()]
    ['0x0', '0x5692161d100b05e5']
    """
    x = numbers.astype(np.uint64)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))
