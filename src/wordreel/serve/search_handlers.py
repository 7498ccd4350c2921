"""A search request, from its fields to the JSON of its answer. All of it runs in a search thread."""

from __future__ import annotations

import time
from dataclasses import replace

from wordreel.search.query import Query
from wordreel.search.query_terms import resolve_terms
from wordreel.serve import schemas
from wordreel.serve.hit_json import hit_objects
from wordreel.serve.live import LiveState
from wordreel.serve.search_answer import (
    SearchAnswer,
    answer_search,
    as_written,
    json_bytes,
)
from wordreel.serve.service import Service


class RequestTimer:
    """Where the time of one request went."""

    def __init__(self) -> None:
        self._started = self._last = time.perf_counter()
        self.queue = 0.0

    def lap(self) -> float:
        now = time.perf_counter()
        since, self._last = now - self._last, now
        return since

    def finish(self, service: Service) -> schemas.TimingModel:
        search = self.queue + self.lap()
        total = time.perf_counter() - self._started
        service.metrics.search_seconds.observe(search)
        return schemas.TimingModel(
            search_ms=round(search * 1e3, 3),
            queue_ms=round(self.queue * 1e3, 3),
            total_ms=round(total * 1e3, 3),
        )


def query_of(service: Service, request: schemas.SearchRequest) -> Query:
    """The request as a query; uploads and videos of the library are found by their content hash."""
    query = as_written(request)
    if request.image is not None:
        return replace(query, image=service.uploads.find(request.image))
    return resolve_terms(service.store, query)


def search(service: Service, request: schemas.SearchRequest, query: Query, timer: RequestTimer) -> bytes:
    """The answer to a search as JSON; to one that was asked a moment ago, the same answer."""
    timer.queue = timer.lap()
    state = service.live.now
    # Tags and people that the words name may have changed since: the query has what they mean now.
    question = f"{request.model_dump_json(exclude_defaults=True)}\0{query!r}"
    answer = service.answers.get(state, question) if query.image is None else None
    if answer is None:
        answer = _answer(service, state, request, query)
        service.answers.put(state, question, answer)
    service.note_returned(answer.waiting)
    took = timer.finish(service).model_dump_json().encode()
    return answer.json[:-1] + b',"took":' + took + b"}"


def _answer(service: Service, state: LiveState, request: schemas.SearchRequest, query: Query) -> SearchAnswer:
    """The answer of a search worker; without one, of this process."""
    found = None
    if query.texts and service.workers is not None and state.problem is None:
        found = service.workers.answer(state.version, request)
    return found or answer_search(state.check(), request, query, service.uploaded)


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
        "notices": results.notices,
        "took": timer.finish(service).model_dump(),
    }
    return json_bytes(response)
