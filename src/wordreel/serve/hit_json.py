"""Hits of a search as JSON objects, with the fields of `schemas.HitModel`.

They are plain dictionaries: a page of hits has two hundred objects, and validating what the program itself
puts together would take as long as finding it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from wordreel.search.hits import Hit, Match, Reason, SequenceHit
from wordreel.search.searcher import Searcher
from wordreel.search.segments import take_segments
from wordreel.serve.display import display_name, display_path, media_url, preview_url, thumb_url
from wordreel.serve.schemas import finite

JsonObject = dict[str, Any]


def hit_objects(
    searcher: Searcher, hits: Sequence[Hit], weights: Sequence[float] | None, uploaded: dict[str, str]
) -> list[JsonObject]:
    """`weights` is the query's mixture of experts; None for look-alikes."""
    shares = _expert_shares(searcher, [hit.content for hit in hits], weights)
    return [_hit(hit, own, uploaded) for hit, own in zip(hits, shares, strict=True)]


def reason_objects(why: Iterable[Reason]) -> list[JsonObject]:
    """With the fields of `schemas.ReasonModel`."""
    return [
        {
            "expert": reason.expert,
            "share": round(finite(reason.share), 6),
            "what": display_path(reason.what),
            "at": reason.at,
        }
        for reason in why
    ]


def _hit(hit: Hit, weights: dict[str, float], uploaded: dict[str, str]) -> JsonObject:
    return {
        "rank": hit.rank,
        "score": finite(hit.score),
        "confidence": hit.confidence,
        "norm": hit.norm,
        "content": hit.content,
        "path": display_path(hit.path),
        "name": display_name(hit.path, uploaded),
        "kind": hit.kind,
        "duration": hit.duration,
        "analysis": hit.analysis,
        "start": hit.start,
        "end": hit.end,
        "why": reason_objects(hit.why),
        "weights": weights,
        "thumb": thumb_url(hit.content, (hit.start + hit.end) / 2),
        "preview": preview_url(hit.content, hit.start, hit.end),
        "media": media_url(hit.content),
        "then": _later(hit) if isinstance(hit, SequenceHit) else None,
        "like": {"start": hit.like[0], "end": hit.like[1]} if isinstance(hit, Match) else None,
        "identical": isinstance(hit, Match) and hit.identical,
    }


def _later(hit: SequenceHit) -> JsonObject:
    return {"start": hit.then[0], "end": hit.then[1], "score": finite(hit.then_score)}


def _expert_shares(
    searcher: Searcher, contents: Sequence[str], weights: Sequence[float] | None
) -> list[dict[str, float]]:
    """w a / Σ w a: the mixture weight of each expert for each of these videos."""
    if weights is None or not contents:
        return [{} for _ in contents]
    snapshot, experts = searcher.snapshot, searcher.model.experts
    at, known = snapshot.video_places(snapshot.columns.numbers(contents))
    shares = np.zeros((len(contents), len(experts)))
    if known.any():
        rows, starts = take_segments(*snapshot.segments, at[known])
        shares[known] = np.logical_or.reduceat(snapshot.gallery.available[rows], starts, axis=0)
    shares *= np.asarray(weights, np.float64)
    total = shares.sum(axis=1, keepdims=True)
    shares = (shares / np.where(total > 0, total, 1)).round(4)
    return [
        dict(zip(experts, own, strict=True)) if there else {}
        for own, there in zip(shares.tolist(), (total[:, 0] > 0).tolist(), strict=True)
    ]
