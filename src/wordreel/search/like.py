"""Look-alikes: a video to videos.

Items (clips and wholes) of the query video are compared with every item of the library by
`models.similarity.alike`. A video is as like the query as the best pair of their items; videos that share no
expert with it cannot be compared and are left out. The moments displayed are the best pair of clips.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from wordreel.models.base import mixture_weights
from wordreel.models.similarity import alike
from wordreel.search.embedding import tracks_of
from wordreel.search.explain import strongest_first
from wordreel.search.hits import Hit, Match, Reason, Results, hit_of
from wordreel.search.query import Query
from wordreel.search.video_query import VideoQuery
from wordreel.types import Bool, Float32, Int64

if TYPE_CHECKING:
    from wordreel.search.searcher import Searcher

BLOCK = 16_384  # items compared at once ...
AT_ONCE = 256  # ... with so many clips of the query


def find_look_alikes(searcher: Searcher, video: VideoQuery, query: Query) -> Results[Hit]:
    """The videos most like another, best first.

    A video of the library is left out of its own look-alikes, under any name. A picture from outside that the
    library holds too, byte for byte, comes first.
    """
    snapshot = searcher.snapshot
    paths = query.filters.paths(snapshot.files, snapshot.facts)
    total = len(paths)
    if query.image is None:
        paths.pop(video.content, None)
    allowed = np.zeros(len(snapshot), bool)
    for content in paths:
        allowed[snapshot.rows(content)] = True
    best, pairs = best_pairs(searcher, video, allowed)
    ranked: dict[str, int] = {}
    own = (
        [row for row in snapshot.rows(video.content) if best[row] > -np.inf] if video.content in paths else []
    )
    if own:
        ranked[video.content] = max(own, key=lambda row: float(best[row]))
    for row in np.argsort(-best, kind="stable").tolist():
        if len(ranked) == query.offset + query.limit or np.isneginf(best[row]):
            break
        ranked.setdefault(snapshot.items[row].content, row)
    hits = [
        _match(searcher, video, rank, row, int(pairs[row]), paths[content])
        for rank, (content, row) in enumerate(ranked.items(), start=1)
        if rank > query.offset
    ]
    return Results(tuple(hits), total=total)


def best_pairs(searcher: Searcher, video: VideoQuery, allowed: Bool) -> tuple[Float32, Int64]:
    """For every item its best similarity to any clip of the query, and which clip that was, the first of
    equals; −inf for items that are not allowed or cannot be compared."""
    gallery = searcher.snapshot.gallery
    weights = mixture_weights(searcher.model)
    best: Float32 = np.full(len(allowed), -np.inf, np.float32)
    pairs = np.zeros(len(allowed), np.int64)
    for start in range(0, len(allowed), BLOCK):
        rows = start + np.flatnonzero(allowed[start : start + BLOCK])
        if not len(rows):
            continue
        vectors, available = np.asarray(gallery.vectors[rows]), gallery.available[rows]
        for first in range(0, len(video.clips), AT_ONCE):
            some = slice(first, first + AT_ONCE)
            scores = _comparable(video.vectors[some], video.available[some], vectors, available, weights)
            top = scores.argmax(axis=0)
            value = np.take_along_axis(scores, top[None], axis=0)[0]
            better = value > best[rows]
            best[rows[better]] = value[better]
            pairs[rows[better]] = first + top[better]
    return best, pairs


def _match(searcher: Searcher, video: VideoQuery, rank: int, row: int, clip: int, path: str) -> Match:
    items = searcher.snapshot.items
    mine, theirs = _moments(searcher, video, items[row].content)
    shares = _shares(searcher, video, clip, row)
    return hit_of(
        Match,
        searcher.store,
        items[row],
        items[theirs],
        path,
        rank=rank,
        score=float(sum(shares)),
        why=_reasons(searcher, video, clip, row, shares),
        like=(video.clips[mine].start, video.clips[mine].end),
        identical=items[row].content == video.content,
    )


def _moments(searcher: Searcher, video: VideoQuery, content: str) -> tuple[int, int]:
    """The clip of the query and the item of a video that make the best pair of clips."""
    mine, theirs = video.pieces(), searcher.snapshot.clip_rows(content)
    gallery = searcher.snapshot.gallery
    weights = mixture_weights(searcher.model)
    pieces, vectors = video.some(mine), np.asarray(gallery.vectors[theirs])
    scores = _comparable(pieces.vectors, pieces.available, vectors, gallery.available[theirs], weights)
    first, second = np.unravel_index(int(scores.argmax()), scores.shape)
    return mine[int(first)], theirs[int(second)]


def _comparable(videos: Float32, available: Bool, others: Float32, also: Bool, weights: Float32) -> Float32:
    """`alike`, and −inf where no expert is common to both."""
    common = (available * weights) @ also.T.astype(np.float32)
    return np.where(common > 0, alike(videos, available, others, also, weights), np.float32(-np.inf))


def _shares(searcher: Searcher, video: VideoQuery, clip: int, row: int) -> Float32:
    """`[experts]`: each expert's part of the similarity."""
    gallery = searcher.snapshot.gallery
    weights = mixture_weights(searcher.model)
    weights = weights * video.available[clip] * gallery.available[row]
    dots = (video.vectors[clip] * np.asarray(gallery.vectors[row])).sum(axis=1)
    return np.asarray(weights * dots / weights.sum(), np.float32)


def _reasons(
    searcher: Searcher, video: VideoQuery, clip: int, row: int, shares: Float32
) -> tuple[Reason, ...]:
    """The experts that both have, by what they agree on."""
    item, model, gallery = searcher.snapshot.items[row], searcher.model, searcher.snapshot.gallery
    others = tracks_of(searcher.store, model, item.content)
    common = model.compare(video.tracks, video.clips[clip], others, item.clip)
    both = video.available[clip] & gallery.available[row]
    dots = (video.vectors[clip] * np.asarray(gallery.vectors[row])).sum(axis=1)
    return strongest_first(
        Reason(expert, float(shares[m]), *common.get(expert, (f"{dots[m]:.0%} alike", None)))
        for m, expert in enumerate(model.experts)
        if both[m]
    )
