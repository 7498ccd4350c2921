"""A search request as a query, and the JSON of its answer: what the server and its search workers share.

Workers do without FastAPI: it takes a third of what they hold beside their networks.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from pydantic_core import to_json

from wordreel.search.filters import Filters
from wordreel.search.query import Query, VideoMoment
from wordreel.serve.hit_json import JsonObject, hit_objects

if TYPE_CHECKING:
    from wordreel.library.store import LibraryStore
    from wordreel.search.searcher import Searcher
    from wordreel.serve import schemas


@dataclass(frozen=True)
class SearchAnswer:
    """The JSON object of an answer without the time that it took, and the videos in it that wait for the
    thorough pass, by content."""

    json: bytes
    waiting: frozenset[str] = frozenset()


def filters_of(request: schemas.FilterFields) -> Filters:
    return Filters(**{one.name: getattr(request, one.name) for one in fields(Filters)})


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


def check_stored(store: LibraryStore, content: str) -> None:
    from wordreel.serve.problems import Problem

    if not store.clips(content):
        raise Problem(404, "not_found", "there is no such file in the library (any more)")


def answer_search(
    searcher: Searcher, request: schemas.SearchRequest, query: Query, uploaded: dict[str, str]
) -> SearchAnswer:
    """`query` is the request with its terms resolved, `uploaded` what uploads are called."""
    if request.like is not None:
        check_stored(searcher.store, request.like.content)
    results = searcher.search(query)
    response = {  # of `schemas.SearchResponse`, all but the time that it took
        "query": request.model_dump(mode="json", exclude_defaults=True),
        "norm": results.norm,
        "note": results.note.for_page() if results.note else "",
        "notices": results.notices,
        "total_estimate": results.total,
        "hits": hit_objects(searcher, results.hits, results.weights, uploaded),
    }
    waiting = frozenset(hit.content for hit in results.hits if hit.analysis == "quick")
    return SearchAnswer(json_bytes(response), waiting)


def json_bytes(response: JsonObject) -> bytes:
    return to_json(response, inf_nan_mode="null")
