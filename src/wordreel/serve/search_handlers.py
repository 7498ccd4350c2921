"""A search request, from its fields to the JSON of its answer. All but encoding runs in a search thread."""

from __future__ import annotations

import time
from dataclasses import fields, replace

from pydantic_core import to_json

from wordreel.search.filters import Filters
from wordreel.search.query import Query, VideoMoment
from wordreel.search.query_terms import resolve_terms
from wordreel.search.searcher import Searcher
from wordreel.serve import schemas
from wordreel.serve.answer_cache import SearchAnswer
from wordreel.serve.hit_json import JsonObject, hit_objects
from wordreel.serve.problems import Problem
from wordreel.serve.service import Service


class RequestTimer:
    """Where the time of one request went."""

    def __init__(self) -> None:
        self._started = self._last = time.perf_counter()
        self.encode = self.queue = 0.0

    def lap(self) -> float:
        now = time.perf_counter()
        since, self._last = now - self._last, now
        return since

    def finish(self, service: Service) -> schemas.TimingModel:
        search = self.queue + self.lap()
        total = time.perf_counter() - self._started
        service.metrics.encode_seconds.observe(self.encode)
        service.metrics.search_seconds.observe(search)
        return schemas.TimingModel(
            encode_ms=round(self.encode * 1e3, 3),
            search_ms=round(search * 1e3, 3),
            queue_ms=round(self.queue * 1e3, 3),
            total_ms=round(total * 1e3, 3),
        )


def filters_of(request: schemas.FilterFields) -> Filters:
    return Filters(**{one.name: getattr(request, one.name) for one in fields(Filters)})


def query_of(service: Service, request: schemas.SearchRequest) -> Query:
    """The request as a query; uploads and videos of the library are found by their content hash."""
    query = as_written(request)
    if request.image is not None:
        return replace(query, image=service.uploads.find(request.image))
    return resolve_terms(service.store, query)


def as_written(request: schemas.SearchRequest) -> Query:
    """The request as a query whose words still hold their terms, and whose image is an id."""
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


def search(service: Service, request: schemas.SearchRequest, query: Query, timer: RequestTimer) -> bytes:
    """The answer to a search as JSON; to one that was asked a moment ago, the same answer."""
    timer.queue = timer.lap()
    state = service.live.now
    # Tags and people that the words name may have changed since: the query has what they mean now.
    question = f"{request.model_dump_json(exclude_defaults=True)}\0{query!r}"
    answer = service.answers.get(state, question) if query.image is None else None
    if answer is None:
        answer = _answer(service, state.check(), request, query)
        service.answers.put(state, question, answer)
    service.note_returned(answer.hits)
    took = timer.finish(service).model_dump_json().encode()
    return answer.json[:-1] + b',"took":' + took + b"}"


def _answer(
    service: Service, searcher: Searcher, request: schemas.SearchRequest, query: Query
) -> SearchAnswer:
    if request.like is not None:
        check_stored(service, request.like.content)
    results = searcher.search(query)
    response = {  # of `schemas.SearchResponse`, all but the time that it took
        "query": request.model_dump(mode="json", exclude_defaults=True),
        "norm": results.norm,
        "note": results.note.for_page() if results.note else "",
        "total_estimate": results.total,
        "hits": hit_objects(searcher, results.hits, results.weights, service.uploaded),
    }
    return SearchAnswer(_json(response), tuple(results.hits))


def compare(service: Service, query: Query, timer: RequestTimer) -> bytes:
    """The answer to a query under plain ranking and with a bank, as JSON."""
    timer.queue = timer.lap()
    searcher = service.live.now.check()
    results = searcher.search(replace(query, compare=True))
    response = {  # of `schemas.CompareResponse`
        "plain": hit_objects(searcher, results.plain or (), results.weights, service.uploaded),
        "normalised": hit_objects(searcher, results.hits, results.weights, service.uploaded),
        "norm": results.norm,
        "note": results.note.for_page() if results.note else "",
        "took": timer.finish(service).model_dump(),
    }
    return _json(response)


def _json(response: JsonObject) -> bytes:
    return to_json(response, inf_nan_mode="null")
