"""A search request, from its fields to its answer."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from pydantic_core import to_json

from wordreel.search.hits import Hit, Results
from wordreel.search.query import Query
from wordreel.search.query_terms import resolve_terms
from wordreel.serve import schemas
from wordreel.serve.bounded_executor import BoundedExecutor
from wordreel.serve.hit_json import JsonObject, hit_objects
from wordreel.serve.problems import Problem
from wordreel.serve.query_model import SearchRequest, query_of
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


def check_stored(service: Service, content: str) -> None:
    if not service.store.clips(content):
        raise Problem(404, "not_found", "there is no such file in the library (any more)")


def pool_of(service: Service, image: str | None) -> BoundedExecutor:
    """A picture is decoded and analysed first: that belongs to the slow work."""
    return service.search_pool if image is None else service.analysis_pool


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


def search(service: Service, request: SearchRequest, client: str, timer: RequestTimer) -> bytes:
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
        "plain": None if results.plain is None else hits_json(service, results.plain, results),
        "took": timer.finish(service).model_dump(),
    }
    return to_json(response, inf_nan_mode="null")


def hits_json(service: Service, hits: tuple[Hit, ...], results: Results[Any]) -> list[JsonObject]:
    return hit_objects(service.live.now.searcher, hits, results.weights, service.uploaded)
