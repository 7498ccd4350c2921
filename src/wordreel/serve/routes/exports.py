"""What leaves the library for other programs: a moment as a clip, and lists of hits."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import PurePath
from typing import IO, Annotated, Literal
from urllib.parse import quote

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field
from starlette.responses import StreamingResponse

from wordreel.media.clip_file import TOLERANCE
from wordreel.media.types import CutRequest, CutStopped, Watch
from wordreel.search.hit_lists import FORMATS
from wordreel.serve.display import display_name, safe_name
from wordreel.serve.problems import Problem
from wordreel.serve.routes import ContentPath, Served, binary, client_of, in_pool
from wordreel.serve.routes.search import find, pool_of
from wordreel.serve.schemas import RequestModel, SearchRequest, Seconds

router = APIRouter(tags=["exports"])

LONGEST_CLIP = 600.0  # seconds
LARGEST_CLIP = 2**30  # bytes
ENDINGS = {"mp4": (".mp4", "video/mp4", "mp4"), "mkv": (".mkv", "video/x-matroska", "matroska")}
BLOCK = 1 << 18


class ExportParameters(SearchRequest):
    """A search, and the format of its list."""

    format: Literal["csv", "edl", "otio", "m3u"] = Field(description="a table, an edit list or a playlist")


class ClipParameters(RequestModel):
    """The moment, and how it is saved."""

    start: Seconds
    end: Seconds
    format: Literal["mp4", "mkv"] = "mp4"
    tolerance: Seconds = Field(TOLERANCE, description="seconds it may begin early so that nothing is encoded")
    playable: bool = Field(False, description="encode what browsers might not play")
    download: bool = Field(True, description="as a file to save; false: to be played")


@router.get(
    "/api/export",
    response_class=Response,
    responses={200: {"content": {form.media_type.split(";")[0]: {} for form in FORMATS.values()}}},
)
async def export(
    parameters: Annotated[ExportParameters, Query()], service: Served, request: Request
) -> Response:
    """Save the hits of a search as a list for a spreadsheet, an editor or a player."""
    form = FORMATS[parameters.format]
    hits = await service.pools[pool_of(parameters)](find, service, parameters, client_of(request))
    content = await service.pools["search"](service.library.export_hits, hits, parameters.format)
    headers = {"content-disposition": attachment(f"hits{form.ending}")}
    return Response(content, media_type=form.media_type, headers=headers)


@router.get(
    "/api/clip/{content}",
    response_class=Response,
    responses=binary(*(media_type for _, media_type, _ in ENDINGS.values())),
)
@in_pool("clip")
def clip(
    content: ContentPath, parameters: Annotated[ClipParameters, Query()], service: Served, request: Request
) -> Response:
    """Save a moment as a file of its own. Nothing is encoded if a key frame is near enough.

    `X-Clip-Start` says where it really begins, `X-Clip-Picture` and `X-Clip-Sound` whether they were copied.
    """
    _check(parameters)
    info, path = service.info(content), service.files.path(content)
    end = min(parameters.end, info.duration) if info.duration > parameters.start else parameters.end
    ending, kind, container = ENDINGS[parameters.format]
    wanted = CutRequest(parameters.start, end, parameters.tolerance, container, parameters.playable)

    def gone() -> bool:
        """Return whether nobody waits for the clip any more; asked between its pieces."""
        return asyncio.run_coroutine_threadsafe(request.is_disconnected(), service.loop).result()

    target = tempfile.TemporaryFile(prefix="wordreel-clip-")  # noqa: SIM115 - the response closes it
    try:
        report = service.fence.cut(path, wanted, target.fileno(), Watch(LARGEST_CLIP, gone))
    except CutStopped:
        raise Problem(503, "stopped", "the clip was not finished; try again") from None
    headers = {
        "content-length": str(report.bytes),
        "cache-control": "private, no-store",
        "content-security-policy": "default-src 'none'; sandbox",
        "x-clip-start": f"{report.start:.3f}",
        "x-clip-end": f"{report.end:.3f}",
        "x-clip-picture": report.picture,
        "x-clip-sound": report.sound,
    }
    if parameters.download:
        stem, start = PurePath(display_name(str(path), service.uploaded)).stem, int(parameters.start)
        headers["content-disposition"] = attachment(f"{stem} {start // 60}.{start % 60:02d}{ending}")
    return StreamingResponse(_blocks(target), headers=headers, media_type=kind)


def attachment(name: str) -> str:
    """Return the header of a download; names in any script, without anything that could end the header.

    >>> attachment('a"b ü.mp4')
    "attachment; filename*=UTF-8''a%22b%20%C3%BC.mp4"
    """
    return f"attachment; filename*=UTF-8''{quote(safe_name(name), safe='')}"


def _check(parameters: ClipParameters) -> None:
    if parameters.end <= parameters.start:
        raise Problem(422, "bad_moment", "a moment begins before it ends", "end")
    if parameters.end - parameters.start > LONGEST_CLIP:
        raise Problem(
            422, "too_long", f"a clip may have {LONGEST_CLIP:g} seconds; choose a shorter moment", "end"
        )


def _blocks(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        file.seek(0)
        while block := file.read(BLOCK):
            yield block
