"""The videos of the library: list, describe, match, compare, remove."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query

from wordreel.catalogue.jobs import Job
from wordreel.catalogue.listing import files_of, list_videos
from wordreel.catalogue.paths import is_imported
from wordreel.ingest.scan import resolves_within
from wordreel.search import query as queries
from wordreel.search.caption import rank_captions as rank
from wordreel.search.describe import describe
from wordreel.search.query_fields import SearchNorm
from wordreel.search.query_terms import resolve_terms
from wordreel.serve.display import display_name, display_path, media_url, preview_url, thumb_url
from wordreel.serve.hit_json import reason_objects
from wordreel.serve.live import LiveState
from wordreel.serve.problems import Problem
from wordreel.serve.routes import ContentPath, Served, errors
from wordreel.serve.routes.jobs import job_model
from wordreel.serve.schemas import BankName, Beta, Folder, JobResponse, Text
from wordreel.serve.schemas_library import (
    CaptionsRequest,
    FailureModel,
    FileState,
    MatchResponse,
    MomentScore,
    RankedCaptions,
    RemovedResponse,
    StoredCaptions,
    VideoResponse,
    VideosResponse,
    VideoSummary,
)
from wordreel.serve.search_handlers import check_stored
from wordreel.serve.service import Service

router = APIRouter(tags=["videos"])


@router.get("/api/videos", response_model=VideosResponse, responses=errors())
async def videos(
    service: Served,
    offset: Annotated[int, Query(ge=0, le=10**9)] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 60,
    folder: Annotated[Folder | None, Query(description="only files under it")] = None,
    q: Annotated[str, Query(max_length=200, description="part of the name or path")] = "",
) -> VideosResponse:
    """Everything in the library, the newest first."""
    return await service.search_pool(_list, service, offset, limit, folder, q)


@router.get("/api/videos/{content}", response_model=VideoResponse, responses=errors(404))
async def video(content: ContentPath, service: Served) -> VideoResponse:
    """What is known of one video: facts, clips, experts with their strongest labels, words with times."""
    return await service.search_pool(_describe, service, content)


@router.get("/api/videos/{content}/match", response_model=MatchResponse, responses=errors(404))
async def match(
    content: ContentPath,
    service: Served,
    text: Annotated[Text, Query()],
    norm: Annotated[SearchNorm, Query()] = "auto",
    bank: Annotated[BankName | None, Query()] = None,
    beta: Annotated[Beta | None, Query()] = None,
) -> MatchResponse:
    """Where in this video some words match: a strip over time."""
    query = resolve_terms(service.store, queries.Query(text, norm=norm, bank=bank, beta=beta))

    def work() -> MatchResponse:
        state = service.live.now
        _check_searchable(service, state, content)
        result = state.check().where(content, query)
        return MatchResponse(
            step=result.step,
            duration=result.duration,
            scores=list(result.scores),
            moments=[MomentScore(start=s, end=e, score=v) for s, e, v in result.moments],
            norm=result.norm,
            calibrated=result.calibrated,
        )

    return await service.search_pool(work)


@router.get("/api/videos/{content}/captions", response_model=StoredCaptions, responses=errors(404))
async def captions(content: ContentPath, service: Served) -> StoredCaptions:
    """What people wrote about this video, where it was imported with captions."""
    await service.search_pool(check_stored_path, service, content)
    rows = await service.search_pool(service.store.captions, None, None, content)
    stored: list[dict[str, Any]] = [
        {"text": row.text, "start": row.start, "end": row.end, "dataset": row.dataset} for row in rows
    ]
    return StoredCaptions(captions=stored)


@router.post("/api/videos/{content}/captions", response_model=RankedCaptions, responses=errors(404))
async def rank_captions(content: ContentPath, body: CaptionsRequest, service: Served) -> RankedCaptions:
    """Which of some captions says best what this video shows."""

    def work() -> RankedCaptions:
        searcher = service.live.now.searcher
        check_stored(service, content)
        video = searcher.encode_video(queries.VideoMoment(content=content))
        ranked = rank(searcher, video, body.captions, body.limit, body.norm, body.beta)
        captions = [{**vars(one), "why": reason_objects(one.why)} for one in ranked]
        return RankedCaptions.model_validate({"captions": captions})

    return await service.analysis_pool(work)


@router.delete("/api/videos/{content}", response_model=RemovedResponse, responses=errors(404, 409))
async def remove_video(content: ContentPath, service: Served) -> RemovedResponse:
    """Remove a video from the library. Its file stays, unless it was uploaded: then it is deleted."""
    return RemovedResponse(forgotten=await asyncio.to_thread(_remove, service, content))


@router.get("/api/failures", response_model=list[FailureModel], responses=errors())
async def failures(service: Served) -> list[FailureModel]:
    """Files that could not be added, and why."""
    failed = await service.search_pool(service.store.failures)
    return [
        FailureModel(
            path=display_path(one.path),
            name=display_name(one.path, service.uploaded),
            reason=display_path(one.reason),
            failed_at=one.failed_at,
        )
        for one in failed
    ]


@router.post("/api/failures/retry", status_code=202, response_model=JobResponse, responses=errors(404, 409))
async def retry(service: Served) -> JobResponse:
    """Try again to add the files that failed, those inside of the allowed folders."""
    job = await asyncio.to_thread(_retry, service)
    return JobResponse(job=job_model(job))


def _retry(service: Service) -> Job:
    roots = [os.path.realpath(root) for root in service.options.roots]
    uploads = service.uploads.folder
    failed = [one.path for one in service.store.failures()]
    mine = [path for path in failed if resolves_within(path, roots) or Path(path).parent == uploads]
    if not mine:
        raise Problem(404, "nothing_failed", "there is nothing to try again in the folders of this page")
    request = {"paths": mine, "retry_failed": True, "within": [*roots, os.fspath(uploads)]}
    return service.jobs.put("add", f"Trying {len(mine)} again", request)


def _list(service: Service, offset: int, limit: int, folder: str | None, q: str) -> VideosResponse:
    root = folder.rstrip("/") + "/" if folder else ""
    wanted = q.casefold()
    items = [
        VideoSummary(
            content=video.content,
            path=path,
            name=name,
            kind=video.kind,
            duration=video.duration,
            added_at=video.added_at,
            analysis=video.analysis,
            state="ready",
        )
        for video in list_videos(service.store)
        for path in [display_path(video.path)]
        if path.startswith(root)
        for name in [display_name(video.path, service.uploaded)]
        if wanted in path.casefold() or wanted in name.casefold()
    ]
    some = [
        item.model_copy(update={"state": _state(service, item)}) for item in items[offset : offset + limit]
    ]
    return VideosResponse(total=len(items), items=some)


def _state(service: Service, item: VideoSummary) -> FileState:
    """What there is to know about a file before it is searched for."""
    stored = files_of(service.store, item.content)
    if not any(is_imported(path) or os.path.exists(path) for path, _ in stored):  # noqa: PTH110
        return "missing"
    if item.content not in service.live.now.searcher.snapshot:
        return "preparing"
    return "quick" if item.analysis == "quick" else "ready"


def _describe(service: Service, content: str) -> VideoResponse:
    row = check_stored_path(service, content)
    known = describe(service.store, row, service.library.weights)
    info, path = known["info"], str(known["path"])
    file = service.store.file(path)
    video = service.store.video(content)
    described = VideoResponse(
        content=content,
        path=display_path(path),
        paths=[display_path(one) for one in known["paths"]],
        name=display_name(path, service.uploaded),
        kind=info["kind"],
        duration=info["duration"],
        width=info["width"],
        height=info["height"],
        size=video.size if video else 0,
        container=info["container"],
        added_at=file.added_at if file else 0.0,
        analysis=known["analysis"],
        state="ready",
        clips=known["clips"],
        experts=known["experts"],
        words=known["words"],
        thumb=thumb_url(content, info["duration"] / 2),
        preview=preview_url(content, 0.0, info["duration"]),
        media=media_url(content),
    )
    described.state = _state(service, described)
    return described


def _remove(service: Service, content: str) -> list[str]:
    video = service.store.video(content)
    if video is None or not video.paths:
        raise _unknown()
    with service.jobs.give_way():
        gone = service.store.remove([path if is_imported(path) else Path(path) for path in video.paths])
        if content in service.uploaded:
            service.uploads.delete(content)
        service.reopen()
    return [display_path(path) for path in gone]


def check_stored_path(service: Service, content: str) -> Path:
    """The first path of a video of the library."""
    video = service.store.video(content)
    if video is None or not video.paths:
        raise _unknown()
    return Path(video.paths[0])


def _check_searchable(service: Service, state: LiveState, content: str) -> None:
    """In the index, not only in the library."""
    if content not in state.searcher.snapshot:
        check_stored_path(service, content)
        raise Problem(409, "not_ready", "this video is not searchable yet; wait for its job to end")


def _unknown() -> Problem:
    return Problem(404, "not_found", "there is no such file in the library (any more)")
