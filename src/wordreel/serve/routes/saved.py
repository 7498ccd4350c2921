"""Saved searches."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Path
from pydantic import BaseModel, Field

from wordreel.errors import LibraryError
from wordreel.search.saved import SavedSearch, query_to_json
from wordreel.serve.problems import Problem
from wordreel.serve.query_model import SearchRequest, query_of
from wordreel.serve.routes import Served, errors
from wordreel.serve.schemas_library import OkResponse

router = APIRouter(tags=["saved"])

Name = Annotated[str, Path(min_length=1, max_length=100)]


class SavedModel(BaseModel):
    name: str
    query: dict[str, Any] = Field(description="as POST /api/search takes it")
    made_at: float


class SavedResponse(BaseModel):
    saved: list[SavedModel]


@router.get("/api/saved", response_model=SavedResponse, responses=errors())
async def saved(service: Served) -> SavedResponse:
    """Every saved search, by name."""
    found = await service.search_pool(service.library.saved.list)
    return SavedResponse(saved=[_model(one) for one in found])


@router.put("/api/saved/{name}", response_model=SavedModel, responses=errors(409))
async def save(name: Name, body: SearchRequest, service: Served) -> SavedModel:
    """Save a search under a name, or replace the one of that name. Its limit and offset are not saved."""
    made = await asyncio.to_thread(service.library.saved.save, name, query_of(body), True)
    return _model(made)


@router.delete("/api/saved/{name}", response_model=OkResponse, responses=errors(404, 409))
async def remove(name: Name, service: Served) -> OkResponse:
    """Remove a saved search."""
    names = [one.name for one in await service.search_pool(service.library.saved.list)]
    if name not in names:
        raise Problem(404, "not_found", "there is no saved search of that name")
    try:
        await asyncio.to_thread(service.library.saved.remove, name)
    except LibraryError as error:
        raise Problem(404, "not_found", error.message) from None
    return OkResponse()


def _model(one: SavedSearch) -> SavedModel:
    values = query_to_json(one.query)
    if (like := values.get("like")) is not None:
        values["like"], values["second"] = like["content"], like["second"]
    return SavedModel(name=one.name, query=values, made_at=one.made_at)
