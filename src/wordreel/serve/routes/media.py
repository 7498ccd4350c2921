"""Thumbnails of videos, and the videos themselves."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from wordreel.serve.display import display_name
from wordreel.serve.media_files import DOWNLOAD, TYPES, MediaResponse
from wordreel.serve.routes import ContentPath, Served, binary, in_pool
from wordreel.serve.schemas import Seconds
from wordreel.serve.thumbnails import SIDE, SIDES

router = APIRouter(tags=["media"])

ThumbSize = Annotated[int, Query(ge=1, le=SIDES[-1], description="pixels of the shorter side, rounded up")]
Second = Annotated[Seconds, Query()]
CACHED = {"cache-control": "private, max-age=86400"}
SHOWN = sorted({kind for kinds in TYPES.values() for kind in kinds} | {"video/x-matroska", DOWNLOAD})


@router.get("/api/thumb/{content}", response_class=Response, responses=binary("image/jpeg"))
@in_pool("thumbnail")
def thumb(content: ContentPath, service: Served, t: Second = 0.0, size: ThumbSize = SIDE) -> Response:
    """Return a JPEG of one frame."""
    duration = service.info(content).duration
    picture = service.thumbnails.thumb(content, service.files.path(content), t, duration, size)
    return Response(picture, media_type="image/jpeg", headers=CACHED)


@router.get("/api/uploads/{content}/thumb", response_class=Response, responses=binary("image/jpeg"))
@in_pool("thumbnail")
def upload_thumb(content: ContentPath, service: Served, t: Second = 0.0, size: ThumbSize = SIDE) -> Response:
    """Return a JPEG of a picture or film that was uploaded to search with."""
    picture = service.thumbnails.thumb(content, service.uploads.find(content), t, t + 1.0, size)
    return Response(picture, media_type="image/jpeg", headers=CACHED)


@router.get("/api/preview/{content}", response_class=Response, responses=binary("image/webp"))
@in_pool("thumbnail")
def preview(
    content: ContentPath,
    service: Served,
    start: Second = 0.0,
    end: Annotated[Seconds | None, Query()] = None,
) -> Response:
    """Return a small moving picture of a moment (animated WebP)."""
    duration = service.info(content).duration
    until = duration if end is None else end
    moving = service.thumbnails.preview(content, service.files.path(content), start, until, duration)
    return Response(moving, media_type="image/webp", headers=CACHED)


@router.head("/media/{content}", response_class=Response, include_in_schema=False)
@router.get(
    "/media/{content}",
    response_class=Response,
    responses={
        **binary(*SHOWN),
        206: {"description": "the requested range"},
        304: {"description": "you have it"},
        416: {"description": "there is no such part"},
    },
)
@in_pool("media")
def media(content: ContentPath, service: Served) -> Response:
    """Return the file itself, whole or in ranges of bytes."""
    info = service.info(content)
    path, file = service.files.open(content)
    return MediaResponse(file, info, content, display_name(str(path), service.uploaded))
