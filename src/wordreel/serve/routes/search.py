"""Search by words, by picture, by video or moment, and in time."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from wordreel.banks.embedded_bank import EmbeddedBank
from wordreel.banks.examples import example_queries
from wordreel.catalogue import banks as bank_store
from wordreel.serve import search_handlers
from wordreel.serve.query_model import SearchRequest
from wordreel.serve.routes import Served, client_of, errors
from wordreel.serve.schemas import SearchResponse
from wordreel.serve.schemas_library import ExamplesResponse
from wordreel.serve.service import Service

router = APIRouter(tags=["search"])


@router.get("/api/search", response_model=SearchResponse, responses=errors(404, 409))
async def search_get(asked: Annotated[SearchRequest, Query()], service: Served, request: Request) -> Response:
    """Find videos, and the second in them."""
    return await search(asked, service, request)


@router.post("/api/search", response_model=SearchResponse, responses=errors(404, 409))
async def search(asked: SearchRequest, service: Served, request: Request) -> Response:
    """Find videos, and the second in them."""
    pool = search_handlers.pool_of(service, asked.image)
    timer = search_handlers.RequestTimer()
    found = await pool(search_handlers.search, service, asked, client_of(request), timer)
    return Response(found, media_type="application/json")


@router.get("/api/examples", response_model=ExamplesResponse, responses=errors())
async def examples(service: Served) -> ExamplesResponse:
    """Queries that find something in this library; none without a query bank."""
    return ExamplesResponse(examples=await service.analysis_pool(_examples, service))


def _examples(service: Service) -> list[str]:
    state = service.live.now
    rows = bank_store.list_banks(service.store)
    if state.problem is not None or not rows or not len(state.searcher):
        return []
    name = max(rows, key=lambda row: (row.size, row.name)).name
    bank = bank_store.read_bank(service.store, name)
    return state.cached(
        ("examples", name, str(bank.revision)),
        lambda: example_queries(EmbeddedBank.open(state.searcher, bank)),
    )
