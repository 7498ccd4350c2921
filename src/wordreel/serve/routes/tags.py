"""Tags and notes on moments."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from wordreel.catalogue.annotations import LONGEST_NOTE, Annotation, TagCount
from wordreel.serve.routes import ContentPath, Number, Served
from wordreel.serve.schemas import OkResponse, RequestModel, Seconds, ShortText

router = APIRouter(tags=["tags"])

AnnotationText = Annotated[str, Field(min_length=1, max_length=LONGEST_NOTE)]


class AnnotationsResponse(BaseModel):
    """Tags and notes."""

    annotations: list[Annotation]


class AnnotationRequest(RequestModel):
    """A tag or a note; without `start` and `end`, on all of the video."""

    kind: Literal["tag", "note"]
    text: AnnotationText
    start: Seconds | None = None
    end: Seconds | None = None


class TextRequest(RequestModel):
    """A new text."""

    text: AnnotationText


class TagsResponse(BaseModel):
    """Every tag."""

    tags: list[TagCount]


@router.get("/api/tags")
def tags(service: Served) -> TagsResponse:
    """List the tags with their numbers of moments, the most used first."""
    return TagsResponse(tags=list(service.library.annotations.tags()))


@router.get("/api/annotations")
def tagged(service: Served, tag: Annotated[ShortText, Query()]) -> AnnotationsResponse:
    """List the moments with a tag."""
    return AnnotationsResponse(annotations=service.library.annotations.list(tag=tag))


@router.get("/api/videos/{content}/annotations")
def of_video(content: ContentPath, service: Served) -> AnnotationsResponse:
    """List tags and notes of one video, in order of time."""
    service.video(content)
    return AnnotationsResponse(annotations=service.library.annotations.of_content(content))


@router.post("/api/videos/{content}/annotations", status_code=201)
def add(content: ContentPath, body: AnnotationRequest, service: Served) -> Annotation:
    """Tag a moment or write a note on it. What is there already is returned as it is."""
    service.video(content)
    return service.library.annotations.add(content, body.kind, body.text, body.start, body.end)


@router.put("/api/annotations/{number}")
def change(number: Number, body: TextRequest, service: Served) -> Annotation:
    """Give a tag or a note another text."""
    return service.library.annotations.change(number, body.text)


@router.delete("/api/annotations/{number}")
def remove(number: Number, service: Served) -> OkResponse:
    """Remove a tag or a note."""
    service.library.annotations.remove(number)
    return OkResponse()
