"""Hits of a search as their JSON models."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from wordreel.search.hits import Hit, Match, Reason, SequenceHit
from wordreel.search.searcher import Searcher
from wordreel.serve import schemas
from wordreel.serve.display import display_name, display_path, media_url, preview_url, thumb_url


def hit_models(
    searcher: Searcher, hits: Sequence[Hit], weights: Sequence[float] | None, uploaded: dict[str, str]
) -> list[schemas.HitModel]:
    """`weights` is the query's mixture of experts; None for look-alikes."""
    shares = _expert_shares(searcher, [hit.content for hit in hits], weights)
    return [_hit(hit, own, uploaded) for hit, own in zip(hits, shares, strict=True)]


def reason_models(why: Iterable[Reason]) -> list[schemas.ReasonModel]:
    return [
        schemas.ReasonModel(
            expert=r.expert, share=round(schemas.finite(r.share), 6), what=display_path(r.what), at=r.at
        )
        for r in why
    ]


def _hit(hit: Hit, weights: dict[str, float], uploaded: dict[str, str]) -> schemas.HitModel:
    return schemas.HitModel(
        rank=hit.rank,
        score=schemas.finite(hit.score),
        confidence=hit.confidence,
        norm=hit.norm,
        content=hit.content,
        path=display_path(hit.path),
        name=display_name(hit.path, uploaded),
        kind=hit.kind,
        duration=hit.duration,
        analysis=hit.analysis,
        start=hit.start,
        end=hit.end,
        why=reason_models(hit.why),
        weights=weights,
        thumb=thumb_url(hit.content, (hit.start + hit.end) / 2),
        preview=preview_url(hit.content, hit.start, hit.end),
        media=media_url(hit.content),
        then=_later(hit) if isinstance(hit, SequenceHit) else None,
        like=schemas.SpanModel(start=hit.like[0], end=hit.like[1]) if isinstance(hit, Match) else None,
        identical=isinstance(hit, Match) and hit.identical,
    )


def _later(hit: SequenceHit) -> schemas.ThenModel:
    return schemas.ThenModel(start=hit.then[0], end=hit.then[1], score=schemas.finite(hit.then_score))


def _expert_shares(
    searcher: Searcher, contents: Sequence[str], weights: Sequence[float] | None
) -> list[dict[str, float]]:
    """w a / Σ w a: the mixture weight of each expert for each of these videos."""
    if weights is None or not contents:
        return [{} for _ in contents]
    snapshot, experts = searcher.snapshot, searcher.model.experts
    rows = [snapshot.video_rows(number) for number in snapshot.columns.numbers(contents).tolist()]
    shares = np.zeros((len(contents), len(experts)))
    for number, own in enumerate(rows):
        shares[number] = snapshot.gallery.available[own].any(axis=0)
    shares *= np.asarray(weights, np.float64)
    total = shares.sum(axis=1, keepdims=True)
    shares = (shares / np.where(total > 0, total, 1)).round(4)
    return [
        dict(zip(experts, own, strict=True)) if there else {}
        for own, there in zip(shares.tolist(), (total[:, 0] > 0).tolist(), strict=True)
    ]
