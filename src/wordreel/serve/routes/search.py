"""Search by words, by picture, by video or moment, and in time; saved searches; example queries."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, Field
from pydantic_core import to_json

from wordreel.banks.embedded_bank import EmbeddedBank
from wordreel.banks.examples import example_queries
from wordreel.catalogue import banks as bank_store
from wordreel.search.hits import Hit, Results
from wordreel.search.saved import SavedSearch, query_to_json
from wordreel.search.words.query_terms import resolve_terms
from wordreel.serve.display import JsonObject, hit_objects
from wordreel.serve.problems import Problem
from wordreel.serve.routes import Served, client_of, in_pool
from wordreel.serve.routes.banks import largest_bank
from wordreel.serve.schemas import OkResponse, SearchRequest, SearchResponse, query_of
from wordreel.serve.service import Service

router = APIRouter(tags=["search"])

Name = Annotated[str, Path(min_length=1, max_length=100)]


class SavedModel(BaseModel):
    """A saved search."""

    name: str
    query: dict[str, Any] = Field(description="as POST /api/search takes it")
    made_at: float


class SavedResponse(BaseModel):
    """Every saved search."""

    saved: list[SavedModel]


class ExamplesResponse(BaseModel):
    """Example queries."""

    examples: list[str] = Field(description="queries that find something in this library")


@router.get("/api/search", response_model=SearchResponse)
async def search_get(asked: Annotated[SearchRequest, Query()], service: Served, request: Request) -> Response:
    """Find videos, and the second in them."""
    return await search(asked, service, request)


@router.post("/api/search", response_model=SearchResponse)
async def search(asked: SearchRequest, service: Served, request: Request) -> Response:
    """Find videos, and the second in them."""
    client, began = client_of(request), time.perf_counter()
    found = await service.pools[pool_of(asked)](_answer, service, asked, client, began)
    return Response(found, media_type="application/json")


def pool_of(asked: SearchRequest) -> str:
    """Return the pool for a search: a picture is decoded and analysed first, which is slow work."""
    return "search" if asked.image is None else "analysis"


def _answer(service: Service, asked: SearchRequest, client: str, began: float) -> bytes:
    """Return the answer to a search as JSON, with the fields of `SearchResponse`."""
    started = time.perf_counter()
    results = find(service, asked, client)

    def as_json(hits: tuple[Hit, ...]) -> list[JsonObject]:
        return hit_objects(service.live.now.searcher, hits, results.weights, service.uploaded)

    hits = as_json(results.hits)
    plain = None if results.plain is None else as_json(results.plain)
    total = time.perf_counter() - began
    service.metrics.search_seconds.observe(total)
    response = {
        "query": asked.model_dump(mode="json", exclude_defaults=True),
        "norm": results.norm,
        "note": results.note.for_page() if results.note else "",
        "notices": results.notices,
        "total_estimate": results.total,
        "hits": hits,
        "plain": plain,
        "took": {"queue_ms": round((started - began) * 1e3, 3), "total_ms": round(total * 1e3, 3)},
    }
    return to_json(response, inf_nan_mode="null")


def find(service: Service, asked: SearchRequest, client: str) -> Results[Hit]:
    """Search the library, and log what was searched for. Runs in a thread."""
    query = query_of(asked)
    if isinstance(query.image, str):
        query = replace(query, image=service.uploads.find(query.image))
    if query.video is not None and query.video.content is not None:
        service.check_stored(query.video.content)
    if query.offset == 0 and service.query_log.on:
        for text in resolve_terms(service.store, query).wanted:
            service.query_log.record(client, text)
    return service.library.search(query)


@router.get("/api/examples")
@in_pool("analysis")
def examples(service: Served) -> ExamplesResponse:
    """Suggest queries that find something in this library; none without a query bank."""
    state, name = service.live.now, largest_bank(service)
    if state.problem is not None or name is None or not len(state.searcher):
        return ExamplesResponse(examples=[])
    bank = bank_store.read_bank(service.store, name)
    found = state.cached(
        ("examples", name, bank.revision), lambda: example_queries(EmbeddedBank.open(state.searcher, bank))
    )
    return ExamplesResponse(examples=found)


@router.get("/api/saved", tags=["saved"])
def saved(service: Served) -> SavedResponse:
    """List the saved searches by name."""
    return SavedResponse(saved=[_saved(search) for search in service.library.saved.list()])


@router.put("/api/saved/{name}", tags=["saved"])
def save(name: Name, body: SearchRequest, service: Served) -> SavedModel:
    """Save a search under a name, or replace the one of that name. Its limit and offset are not saved."""
    return _saved(service.library.saved.save(name, query_of(body), True))


@router.delete("/api/saved/{name}", tags=["saved"])
def remove(name: Name, service: Served) -> OkResponse:
    """Remove a saved search."""
    if all(saved.name != name for saved in service.library.saved.list()):
        raise Problem(404, "not_found", "there is no saved search of that name")
    service.library.saved.remove(name)
    return OkResponse()


def _saved(search: SavedSearch) -> SavedModel:
    values = query_to_json(search.query)
    if (like := values.get("like")) is not None:
        values["like"], values["second"] = like["content"], like["second"]
    return SavedModel(name=search.name, query=values, made_at=search.made_at)
