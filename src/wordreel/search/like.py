"""Look-alikes: a video to videos.

Items (clips and wholes) of the query video are compared with every item of the library by
`models.similarity.alike`. A video is as like the query as the best pair of their items; videos that share no
expert with it cannot be compared and are left out. The moments displayed are the best pair of clips.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from wordreel.embed.embed_library import tracks_of
from wordreel.models.base import mixture_weights
from wordreel.models.similarity import alike
from wordreel.search.explain import strongest_first
from wordreel.search.hits import Hit, Match, Reason, Results, hit_of
from wordreel.search.query import Query
from wordreel.search.video_query import VideoQuery
from wordreel.types import Bool, Float32, Int64

if TYPE_CHECKING:
    from wordreel.catalogue.files import FileRecord
    from wordreel.search.searcher import Searcher

AT_ONCE = 256  # clips of the query searched for together


def find_look_alikes(searcher: Searcher, video: VideoQuery, query: Query) -> Results[Hit]:
    """Return the videos most like another, best first.

    A video of the library is left out of its own look-alikes, under any name. A picture from outside that the
    library holds too, byte for byte, comes first.
    """
    snapshot = searcher.snapshot
    passing = snapshot.passing(query.filters)
    allowed = snapshot.live if passing.allowed is None else passing.allowed
    own = snapshot.rows(video.content)
    pairs: list[LikePair] = []
    if query.image is None:
        allowed = allowed.copy()
        allowed[own] = False
    elif allowed[own].any():
        pairs = [pair for pair in [_best_pair(searcher, video, own)] if np.isfinite(pair.score)]
    wanted = query.offset + query.limit
    taken = {int(snapshot.columns.video[pair.row]) for pair in pairs}
    pairs += [
        pair
        for pair in best_pairs(searcher, video, allowed, wanted)
        if int(snapshot.columns.video[pair.row]) not in taken
    ]
    displayed = pairs[query.offset : wanted]
    records = passing.records([snapshot.items[pair.row].content for pair in displayed])
    hits = [
        _match(searcher, video, rank, pair, records[snapshot.items[pair.row].content])
        for rank, pair in enumerate(displayed, start=query.offset + 1)
        if snapshot.items[pair.row].content in records  # not removed since the snapshot
    ]
    return Results(tuple(hits), total=passing.count)


@dataclass(frozen=True)
class LikePair:
    """An item by row, the clip of the query that it is most like, and how much."""

    row: int
    clip: int
    score: float


def best_pairs(searcher: Searcher, video: VideoQuery, allowed: Bool, count: int) -> list[LikePair]:
    """Return the best pair of each of the `count` best videos, best first; of equals the lower row and clip.

    Every clip of the query is searched for, deeper until no item that was not seen can be among the best.
    """
    snapshot = searcher.snapshot
    rows = len(snapshot.columns)
    depth = 4 * count
    while True:
        best, unseen = _search_clips(searcher, video, allowed, min(depth, rows))
        videos: dict[int, LikePair] = {}
        for pair in best:
            videos.setdefault(int(snapshot.columns.video[pair.row]), pair)
        ranked = list(videos.values())[:count]
        if depth >= rows or (len(ranked) == count and ranked[-1].score > unseen):
            return ranked
        depth *= 4


def _search_clips(
    searcher: Searcher, video: VideoQuery, allowed: Bool, depth: int
) -> tuple[list[LikePair], float]:
    """Return the best items of every clip of the query, and the score that no other item exceeds.

    The `depth` best for each clip that can be compared with it, best first, each with its best clip.
    """
    index, available = searcher.snapshot.index, searcher.snapshot.gallery.available
    weights = mixture_weights(searcher.model)
    best: dict[int, LikePair] = {}
    unseen = -np.inf
    for first in range(0, len(video.clips), AT_ONCE):
        some = slice(first, first + AT_ONCE)
        wanted = video.available[some] * weights
        found = index.best(video.vectors[some], wanted, depth, allowed)
        unseen = max(unseen, float(found.scores[:, -1].max(initial=-np.inf)))
        common = np.einsum("qe,qke->qk", wanted, available[found.rows].astype(np.float32))
        clips, at = np.nonzero((found.rows >= 0) & (common > 0))
        for clip, row, score in zip(
            clips.tolist(), found.rows[clips, at].tolist(), found.scores[clips, at].tolist(), strict=True
        ):
            if row not in best or score > best[row].score:
                best[row] = LikePair(row, first + clip, score)
    return sorted(best.values(), key=lambda pair: (-pair.score, pair.row)), unseen


def _best_pair(searcher: Searcher, video: VideoQuery, rows: Int64) -> LikePair:
    """Return the best pair of a clip of the query and one of some items; −inf if none can be compared."""
    scores = _pair_scores(searcher, video, rows)
    item, clip = np.unravel_index(int(scores.T.argmax()), scores.T.shape)
    return LikePair(int(rows[item]), int(clip), float(scores[clip, item]))


def _pair_scores(searcher: Searcher, video: VideoQuery, rows: Int64) -> Float32:
    """Return `[clips, rows]`: `alike`, and −inf where no expert is common to both."""
    gallery, weights = searcher.snapshot.gallery, mixture_weights(searcher.model)
    vectors, available = np.asarray(gallery.vectors[rows]), gallery.available[rows]
    common = (video.available * weights) @ available.T.astype(np.float32)
    scores = alike(video.vectors, video.available, vectors, available, weights)
    return np.where(common > 0, scores, np.float32(-np.inf))


def _match(searcher: Searcher, video: VideoQuery, rank: int, pair: LikePair, record: FileRecord) -> Match:
    snapshot = searcher.snapshot
    content = snapshot.items[pair.row].content
    pieces, theirs = video.pieces(), snapshot.clip_rows(content)
    scores = _pair_scores(searcher, video.some(pieces), theirs)
    first, second = np.unravel_index(int(scores.argmax()), scores.shape)  # the best pair of clips
    mine = video.clips[pieces[int(first)]]
    return hit_of(
        Match,
        record,
        snapshot.items[int(theirs[int(second)])],
        rank=rank,
        score=pair.score,
        why=_reasons(searcher, video, pair),
        like=(mine.start, mine.end),
        identical=content == video.content,
    )


def _reasons(searcher: Searcher, video: VideoQuery, pair: LikePair) -> tuple[Reason, ...]:
    """Return the experts that both have, by their share of the similarity and what they agree on."""
    item, model, gallery = searcher.snapshot.items[pair.row], searcher.model, searcher.snapshot.gallery
    others = tracks_of(searcher.store, model, item.content)
    agreed = model.compare(video.tracks, video.clips[pair.clip], others, item.clip)
    both = video.available[pair.clip] & gallery.available[pair.row]
    dots = (video.vectors[pair.clip] * np.asarray(gallery.vectors[pair.row])).sum(axis=1)
    weights = mixture_weights(model) * video.available[pair.clip] * gallery.available[pair.row]
    shares = np.asarray(weights * dots / weights.sum(), np.float32)
    return strongest_first(
        Reason(expert, float(shares[m]), *agreed.get(expert, (f"{dots[m]:.0%} alike", None)))
        for m, expert in enumerate(model.experts)
        if both[m]
    )
