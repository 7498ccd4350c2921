"""Hits of a search as JSON objects, with the fields of `schemas.HitModel`.

They are plain dictionaries: a page of hits has two hundred objects, and validating what the program itself
puts together would take as long as finding it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import isfinite
from typing import Any

import numpy as np

from wordreel.search.hits import Hit, Match, Reason, SequenceHit
from wordreel.search.searcher import Searcher
from wordreel.serve.display import display_name, display_path, media_url, preview_url, thumb_url
from wordreel.serve.schemas import finite

JsonObject = dict[str, Any]
CACHED_MOMENTS = 4_096  # of some 600 bytes


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
            "share": round(reason.share, 6) if isfinite(reason.share) else 0.0,
            "what": reason.what if reason.what.isascii() else display_path(reason.what),
            "at": reason.at,
        }
        for reason in why
    ]


def _hit(hit: Hit, weights: dict[str, float], uploaded: dict[str, str]) -> JsonObject:
    own_path = str(hit.path)
    path, name, thumb, preview = _texts(hit.content, own_path, hit.start, hit.end)
    return {
        "rank": hit.rank,
        "score": finite(hit.score),
        "confidence": hit.confidence,
        "norm": hit.norm,
        "content": hit.content,
        "path": path,
        "name": display_name(own_path, uploaded) if uploaded else name,
        "kind": hit.kind,
        "duration": hit.duration,
        "analysis": hit.analysis,
        "start": hit.start,
        "end": hit.end,
        "why": reason_objects(hit.why),
        "weights": weights,
        "thumb": thumb,
        "preview": preview,
        "media": media_url(hit.content),
        "then": _later(hit) if isinstance(hit, SequenceHit) else None,
        "like": {"start": hit.like[0], "end": hit.like[1]} if isinstance(hit, Match) else None,
        "identical": isinstance(hit, Match) and hit.identical,
    }


@lru_cache(CACHED_MOMENTS)
def _texts(content: str, path: str, start: float, end: float) -> tuple[str, str, str, str]:
    """What is displayed of a moment whatever the query: path, name, and the addresses of its pictures."""
    middle = (start + end) / 2
    pictures = thumb_url(content, middle), preview_url(content, start, end)
    return display_path(path), display_name(path), *pictures


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
    there = np.zeros((len(contents), len(experts)), bool)
    there[known] = snapshot.video_experts[at[known]]
    kinds: dict[bytes, dict[str, float]] = {}  # few: most videos have the same experts
    each = []
    for own in there:
        name = own.tobytes()
        if name not in kinds:
            kinds[name] = mixture_shares(experts, [w * a for w, a in zip(weights, name, strict=True)])
        each.append(kinds[name])
    return each


def mixture_shares(experts: Sequence[str], weights: Sequence[float]) -> dict[str, float]:
    """Each expert's part of the sum of all `weights [experts]`; nothing where that is 0.

    >>> mixture_shares(("appearance", "motion", "sound"), [1.0, 0.5, 0.0])
    {'appearance': 0.6667, 'motion': 0.3333, 'sound': 0.0}
    """
    total = sum(weights)
    if total <= 0:
        return {}
    return {expert: round(weight / total, 4) for expert, weight in zip(experts, weights, strict=True)}
