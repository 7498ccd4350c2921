"""Tags and notes on moments."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, Field

from wordreel.catalogue.annotations import LONGEST_NOTE, Annotation
from wordreel.serve.routes import ContentPath, Served, errors
from wordreel.serve.routes.videos import check_stored_path
from wordreel.serve.schemas import RequestModel, Seconds, ShortText
from wordreel.serve.schemas_library import OkResponse

router = APIRouter(tags=["tags"])

Number = Annotated[int, Path(ge=1, le=2**62, description="the number of a tag or a note")]
AnnotationText = Annotated[str, Field(min_length=1, max_length=LONGEST_NOTE)]


class AnnotationModel(BaseModel):
    id: int
    content: str
    start: float
    end: float
    kind: Literal["tag", "note"]
    text: str
    made_at: float


class AnnotationsResponse(BaseModel):
    annotations: list[AnnotationModel]


class AnnotationRequest(RequestModel):
    """A tag or a note; without `start` and `end`, on all of the video."""

    kind: Literal["tag", "note"]
    text: AnnotationText
    start: Seconds | None = None
    end: Seconds | None = None


class TextRequest(RequestModel):
    text: AnnotationText


class TagModel(BaseModel):
    tag: str
    moments: int
    videos: int


class TagsResponse(BaseModel):
    tags: list[TagModel]


@router.get("/api/tags", response_model=TagsResponse, responses=errors())
async def tags(service: Served) -> TagsResponse:
    """Every tag with the number of its moments, the most used first."""
    counts = await service.search_pool(service.library.annotations.tags)
    return TagsResponse(tags=[TagModel(**asdict(count)) for count in counts])


@router.get("/api/annotations", response_model=AnnotationsResponse, responses=errors())
async def tagged(service: Served, tag: Annotated[ShortText, Query()]) -> AnnotationsResponse:
    """Every moment with a tag."""
    found = await service.search_pool(service.library.annotations.list, None, tag)
    return AnnotationsResponse(annotations=[_model(one) for one in found])


@router.get("/api/videos/{content}/annotations", response_model=AnnotationsResponse, responses=errors(404))
async def of_video(content: ContentPath, service: Served) -> AnnotationsResponse:
    """Tags and notes of one video, in order of time."""
    await service.search_pool(check_stored_path, service, content)
    found = await service.search_pool(service.library.annotations.of_content, content)
    return AnnotationsResponse(annotations=[_model(one) for one in found])


@router.post(
    "/api/videos/{content}/annotations",
    status_code=201,
    response_model=AnnotationModel,
    responses=errors(404, 409),
)
async def add(content: ContentPath, body: AnnotationRequest, service: Served) -> AnnotationModel:
    """Tag a moment or write a note on it. What is there already is returned as it is."""
    await asyncio.to_thread(check_stored_path, service, content)
    made = await asyncio.to_thread(
        service.library.annotations.add, content, body.kind, body.text, body.start, body.end
    )
    return _model(made)


@router.put("/api/annotations/{number}", response_model=AnnotationModel, responses=errors(409))
async def change(number: Number, body: TextRequest, service: Served) -> AnnotationModel:
    """Give a tag or a note another text."""
    return _model(await asyncio.to_thread(service.library.annotations.change, number, body.text))


@router.delete("/api/annotations/{number}", response_model=OkResponse, responses=errors(409))
async def remove(number: Number, service: Served) -> OkResponse:
    """Remove a tag or a note."""
    await asyncio.to_thread(service.library.annotations.remove, number)
    return OkResponse()


def _model(one: Annotation) -> AnnotationModel:
    return AnnotationModel(**asdict(one))
