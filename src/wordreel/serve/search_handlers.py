"""A search request, from its fields to its answer."""

from __future__ import annotations

import time
from dataclasses import fields, replace
from typing import Any

from pydantic_core import to_json

from wordreel.search.filters import Filters
from wordreel.search.hits import Hit, Results
from wordreel.search.query import Query, VideoMoment
from wordreel.search.query_terms import resolve_terms
from wordreel.serve import schemas
from wordreel.serve.bounded_executor import BoundedExecutor
from wordreel.serve.hit_json import JsonObject, hit_objects
from wordreel.serve.problems import Problem
from wordreel.serve.service import Service


class RequestTimer:
    """Where the time of one request went."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self._queue = 0.0

    def leave_queue(self) -> None:
        """A thread is free: the search begins."""
        self._queue = time.perf_counter() - self._started

    def finish(self, service: Service) -> schemas.TimingModel:
        total = time.perf_counter() - self._started
        service.metrics.search_seconds.observe(total)
        return schemas.TimingModel(queue_ms=round(self._queue * 1e3, 3), total_ms=round(total * 1e3, 3))


def filters_of(request: schemas.FilterFields) -> Filters:
    return Filters(**{one.name: getattr(request, one.name) for one in fields(Filters)})


def query_of(request: schemas.SearchRequest) -> Query:
    """The request as a query; its image is still the id of an upload."""
    like = request.like
    return Query(
        text=request.text,
        then=request.then,
        like=None if like is None else moment_of(like.content, like.start, like.end),
        image=request.image,
        filters=filters_of(request),
        norm=request.norm,
        bank=request.bank,
        beta=request.beta,
        limit=request.limit,
        offset=request.offset,
        moments=request.moments,
        min_confidence=request.min_confidence,
    )


def moment_of(content: str, start: float | None = None, end: float | None = None) -> VideoMoment:
    """A video of the library, or its clip in the middle of a moment."""
    middle = (start + end) / 2 if start is not None and end is not None and end > start else start
    return VideoMoment(content=content, second=middle)


def check_stored(service: Service, content: str) -> None:
    if not service.store.clips(content):
        raise Problem(404, "not_found", "there is no such file in the library (any more)")


def pool_of(service: Service, query: Query) -> BoundedExecutor:
    """A picture is decoded and analysed first: that belongs to the slow work."""
    return service.analysis_pool if query.image is not None else service.search_pool


def find(service: Service, query: Query, client: str) -> Results[Hit]:
    """Search the library, and log what was searched for. Runs in a thread."""
    if isinstance(query.image, str):
        query = replace(query, image=service.uploads.find(query.image))
    if query.video is not None and query.video.content is not None:
        check_stored(service, query.video.content)
    if query.offset == 0 and service.query_log.on:
        for text in resolve_terms(service.store, query).wanted:
            service.query_log.record(client, text)
    return service.library.search(query)


def search(service: Service, request: schemas.SearchRequest, client: str, timer: RequestTimer) -> bytes:
    """The answer to a search as JSON, with the fields of `schemas.SearchResponse`."""
    timer.leave_queue()
    results = find(service, query_of(request), client)
    response = {
        "query": request.model_dump(mode="json", exclude_defaults=True),
        "norm": results.norm,
        "note": results.note.for_page() if results.note else "",
        "notices": results.notices,
        "total_estimate": results.total,
        "hits": hits_json(service, results.hits, results),
        "took": timer.finish(service).model_dump(),
    }
    return to_json(response, inf_nan_mode="null")


def compare(service: Service, request: schemas.SearchRequest, client: str, timer: RequestTimer) -> bytes:
    """The answer to a comparison as JSON, with the fields of `schemas.CompareResponse`."""
    timer.leave_queue()
    results = find(service, replace(query_of(request), compare=True), client)
    response = {
        "plain": hits_json(service, results.plain or (), results),
        "normalised": hits_json(service, results.hits, results),
        "norm": results.norm,
        "note": results.note.for_page() if results.note else "",
        "notices": results.notices,
        "took": timer.finish(service).model_dump(),
    }
    return to_json(response, inf_nan_mode="null")


def hits_json(service: Service, hits: tuple[Hit, ...], results: Results[Any]) -> list[JsonObject]:
    return hit_objects(service.live.now.searcher, hits, results.weights, service.uploaded)
