"""Thumbnails of videos, and the videos themselves."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from wordreel.media.types import MediaInfo
from wordreel.serve.display import display_name
from wordreel.serve.media_response import DOWNLOAD, TYPES, MediaResponse
from wordreel.serve.problems import Problem
from wordreel.serve.routes import ContentPath, Served, errors
from wordreel.serve.schemas import Seconds
from wordreel.serve.service import Service
from wordreel.serve.thumbnails import SIDE, SIDES

router = APIRouter(tags=["media"])

ThumbSize = Annotated[int, Query(ge=1, le=SIDES[-1], description="pixels of the shorter side, rounded up")]
CACHED = {"cache-control": "private, max-age=86400"}
SHOWN = sorted({kind for kinds in TYPES.values() for kind in kinds} | {"video/x-matroska"})


def _binary(*kinds: str) -> dict[int | str, dict[str, Any]]:
    content = {kind: {"schema": {"type": "string", "format": "binary"}} for kind in kinds}
    return {200: {"content": content, "description": "the bytes"}, **errors(404, 410)}


@router.get("/api/thumb/{content}", response_class=Response, responses=_binary("image/jpeg"))
async def thumb(
    content: ContentPath, service: Served, t: Annotated[Seconds, Query()] = 0.0, size: ThumbSize = SIDE
) -> Response:
    """A JPEG of one frame."""

    def work() -> bytes:
        info = _info(service, content)
        return service.thumbnails.thumb(content, service.files.path(content), t, info.duration, size)

    return Response(await service.thumbnail_pool(work), media_type="image/jpeg", headers=CACHED)


@router.get("/api/uploads/{content}/thumb", response_class=Response, responses=_binary("image/jpeg"))
async def upload_thumb(
    content: ContentPath, service: Served, t: Annotated[Seconds, Query()] = 0.0, size: ThumbSize = SIDE
) -> Response:
    """A JPEG of a picture or film that was uploaded to search with."""

    def work() -> bytes:
        return service.thumbnails.thumb(content, service.uploads.find(content), t, t + 1.0, size)

    return Response(await service.thumbnail_pool(work), media_type="image/jpeg", headers=CACHED)


@router.get("/api/preview/{content}", response_class=Response, responses=_binary("image/webp"))
async def preview(
    content: ContentPath,
    service: Served,
    start: Annotated[Seconds, Query()] = 0.0,
    end: Annotated[Seconds | None, Query()] = None,
) -> Response:
    """A small moving picture of a moment (animated WebP)."""

    def work() -> bytes:
        info = _info(service, content)
        until = info.duration if end is None else end
        path = service.files.path(content)
        return service.thumbnails.preview(content, path, start, until, info.duration)

    return Response(await service.thumbnail_pool(work), media_type="image/webp", headers=CACHED)


@router.head("/media/{content}", response_class=Response, include_in_schema=False)
@router.get(
    "/media/{content}",
    response_class=Response,
    responses={
        **_binary(*SHOWN, DOWNLOAD),
        206: {"description": "the requested range"},
        304: {"description": "you have it"},
        416: {"description": "there is no such part"},
    },
)
async def media(content: ContentPath, service: Served) -> Response:
    """The file itself; one range of bytes at a time."""
    info = await service.media_pool(_info, service, content)
    file = await service.media_pool(service.files.open, content)
    try:
        name = await service.media_pool(_name, service, content)
        return MediaResponse(file, info, content, name)
    except BaseException:
        file.close()
        raise


def _info(service: Service, content: str) -> MediaInfo:
    info = service.store.info(content)
    if info is None:
        raise Problem(404, "not_found", "there is no such file in the library (any more)")
    return info


def _name(service: Service, content: str) -> str:
    return display_name(str(service.files.path(content)), service.uploaded)
