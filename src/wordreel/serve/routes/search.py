"""Search by words, by picture, by video or moment, and in time."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from wordreel.banks.embedded_bank import EmbeddedBank
from wordreel.banks.examples import example_queries
from wordreel.catalogue import banks as bank_store
from wordreel.serve import search_handlers
from wordreel.serve.routes import Served, client_of, errors
from wordreel.serve.schemas import (
    CompareResponse,
    FilterFields,
    RankFields,
    SearchParameters,
    SearchRequest,
    SearchResponse,
    Text,
)
from wordreel.serve.schemas_library import ExamplesResponse
from wordreel.serve.service import Service

router = APIRouter(tags=["search"])


class CompareParameters(FilterFields, RankFields):
    """The question of a comparison."""

    text: Text
    limit: int = Field(12, ge=1, le=100)


@router.get("/api/search", response_model=SearchResponse, responses=errors(404, 409))
async def search_get(
    parameters: Annotated[SearchParameters, Query()], service: Served, request: Request
) -> Response:
    """Find videos, and the second in them."""
    return await _search(service, parameters.request(), request)


@router.post("/api/search", response_model=SearchResponse, responses=errors(404, 409))
async def search_post(body: SearchRequest, service: Served, request: Request) -> Response:
    """Find videos, and the second in them."""
    return await _search(service, body, request)


@router.get("/api/compare", response_model=CompareResponse, responses=errors(409))
async def compare(
    parameters: Annotated[CompareParameters, Query()], service: Served, http_request: Request
) -> Response:
    """The same question ranked plainly and with a query bank, side by side."""
    request = SearchRequest.model_construct(**parameters.model_dump())
    timer = search_handlers.RequestTimer()
    return _json(
        await service.search_pool(search_handlers.compare, service, request, client_of(http_request), timer)
    )


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


async def _search(service: Service, body: SearchRequest, request: Request) -> Response:
    pool = search_handlers.pool_of(service, search_handlers.query_of(body))
    timer = search_handlers.RequestTimer()
    return _json(await pool(search_handlers.search, service, body, client_of(request), timer))


def _json(body: bytes) -> Response:
    return Response(body, media_type="application/json")
