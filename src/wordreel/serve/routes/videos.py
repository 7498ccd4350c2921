"""The videos of the library: list, describe, match, compare, remove."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from wordreel.catalogue.files import ListedVideo, ListOrder, files_of, list_videos
from wordreel.catalogue.paths import is_imported
from wordreel.ingest.plan import resolves_within
from wordreel.search.caption import rank_captions as rank
from wordreel.search.describe import describe
from wordreel.search.hits import CaptionMatch
from wordreel.search.query import Query as Asked
from wordreel.search.query import VideoMoment
from wordreel.search.query_fields import SearchNorm
from wordreel.search.words.query_terms import resolve_terms
from wordreel.serve.display import (
    display_name,
    display_path,
    media_url,
    preview_url,
    thumb_url,
)
from wordreel.serve.problems import Problem
from wordreel.serve.routes import ContentPath, Served, in_pool
from wordreel.serve.routes.banks import Sentence
from wordreel.serve.schemas import (
    Beta,
    Folder,
    JobResponse,
    NormName,
    RequestModel,
    ShortText,
    SpanModel,
    Text,
)
from wordreel.serve.service import Service

router = APIRouter(tags=["videos"])

FileState = Literal["ready", "quick", "preparing", "missing"]


@dataclass(frozen=True)
class VideoSummary(ListedVideo):
    """One file; `analysis` is quick where it is known by its key frames alone so far.

    `state` is "preparing" where it cannot be found yet, and "missing" where no file of this content is where
    it was.
    """

    name: str
    state: FileState


class VideosResponse(BaseModel):
    """One page of files."""

    total: int
    items: list[VideoSummary]


@dataclass(frozen=True)
class VideoResponse(VideoSummary):
    """All that is known of one video."""

    paths: list[str]
    size: int
    width: int
    height: int
    container: str
    clips: list[dict[str, Any]]
    experts: list[dict[str, Any]]
    words: list[dict[str, Any]]
    thumb: str
    preview: str
    media: str


class MomentScore(SpanModel):
    """A moment and how well it matches."""

    score: float


class MatchResponse(BaseModel):
    """How well words match a video over time."""

    step: float
    duration: float
    scores: list[float] = Field(
        description="confidences; not calibrated: 0 is the library's median, 1 its best"
    )
    moments: list[MomentScore] = Field(description="best first")
    norm: str
    calibrated: bool = Field(description="scores are confidences; false without a query bank")


class CaptionsRequest(RequestModel):
    """Captions to choose from."""

    captions: list[Sentence] = Field(
        min_length=1, max_length=5_000, examples=[["a man sings", "a dog barks"]]
    )
    limit: int = Field(5, ge=1, le=200)
    norm: NormName = "none"
    beta: Beta | None = None


class RankedCaptions(BaseModel):
    """Captions, best first."""

    captions: list[CaptionMatch]


class StoredCaptions(BaseModel):
    """Captions that came with an imported video."""

    captions: list[dict[str, Any]]


class RemovedResponse(BaseModel):
    """The paths that were removed."""

    forgotten: list[str]


class FailureModel(BaseModel):
    """A file that could not be added, and why."""

    path: str
    name: str
    reason: str
    failed_at: float


@router.get("/api/videos")
def videos(
    service: Served,
    offset: Annotated[int, Query(ge=0, le=10**9)] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 60,
    folder: Annotated[Folder | None, Query(description="only files under it")] = None,
    q: Annotated[str, Query(max_length=200, description="part of the name or path")] = "",
    sort: Annotated[ListOrder, Query(description="by when they were added, or recorded")] = "added",
) -> VideosResponse:
    """List the library, the newest first."""
    root = folder.rstrip("/") + "/" if folder else ""
    wanted = q.casefold()

    def matches(path: str) -> bool:
        shown, name = display_path(path), display_name(path, service.uploaded)
        return shown.startswith(root) and (wanted in shown.casefold() or wanted in name.casefold())

    found = [video for video in list_videos(service.store, sort) if matches(video.path)]
    items = [
        VideoSummary(
            **vars(video) | {"path": display_path(video.path)},
            name=display_name(video.path, service.uploaded),
            state=_state(service, video.content, video.analysis),
        )
        for video in found[offset : offset + limit]
    ]
    return VideosResponse(total=len(found), items=items)


@router.get("/api/videos/{content}")
def video(content: ContentPath, service: Served) -> VideoResponse:
    """Describe one video: facts, clips, experts with their strongest labels, words with times."""
    stored = service.video(content)
    known = describe(service.store, Path(stored.paths[0]), service.library.weights)
    info, path = known["info"], str(known["path"])
    file = service.store.file(path)
    return VideoResponse(
        content=content,
        path=display_path(path),
        paths=[display_path(path) for path in known["paths"]],
        name=display_name(path, service.uploaded),
        **{name: info[name] for name in ("kind", "duration", "width", "height", "container")},
        size=stored.size,
        added_at=file.added_at if file else 0.0,
        **{
            name: known[name]
            for name in ("analysis", "captured", "captured_from", "clips", "experts", "words")
        },
        state=_state(service, content, known["analysis"]),
        thumb=thumb_url(content, info["duration"] / 2),
        preview=preview_url(content, 0.0, info["duration"]),
        media=media_url(content),
    )


@router.get("/api/videos/{content}/match")
@in_pool("search")
def match(
    content: ContentPath,
    service: Served,
    text: Annotated[Text, Query()],
    norm: Annotated[SearchNorm, Query()] = "auto",
    bank: Annotated[ShortText | None, Query()] = None,
    beta: Annotated[Beta | None, Query()] = None,
) -> MatchResponse:
    """Show where in this video some words match: a strip over time."""
    state = service.live.now
    if content not in state.searcher.snapshot:
        service.video(content)
        raise Problem(409, "not_ready", "this video is not searchable yet; wait for its job to end")
    query = resolve_terms(service.store, Asked(text, norm=norm, bank=bank, beta=beta))
    timeline = state.check().where(content, query)
    moments = [{"start": start, "end": end, "score": score} for start, end, score in timeline.moments]
    return MatchResponse.model_validate({**vars(timeline), "moments": moments})


@router.get("/api/videos/{content}/captions")
def captions(content: ContentPath, service: Served) -> StoredCaptions:
    """List what people wrote about this video, where it was imported with captions."""
    service.video(content)
    stored: list[dict[str, Any]] = [
        {"text": row.text, "start": row.start, "end": row.end, "dataset": row.dataset}
        for row in service.store.captions(content=content)
    ]
    return StoredCaptions(captions=stored)


@router.post("/api/videos/{content}/captions")
@in_pool("analysis")
def rank_captions(content: ContentPath, body: CaptionsRequest, service: Served) -> RankedCaptions:
    """Rank captions by how well they say what this video shows."""
    searcher = service.live.now.searcher
    service.check_stored(content)
    encoded = searcher.encode_video(VideoMoment(content=content))
    ranked = rank(searcher, encoded, body.captions, body.limit, body.norm, body.beta)
    return RankedCaptions(captions=ranked)


@router.delete("/api/videos/{content}")
def remove_video(content: ContentPath, service: Served) -> RemovedResponse:
    """Remove a video from the library. Its file stays, unless it was uploaded: then it is deleted."""
    stored = service.video(content)
    with service.jobs.give_way():
        gone = service.store.remove([path if is_imported(path) else Path(path) for path in stored.paths])
        if content in service.uploaded:
            service.uploads.delete(content)
        service.reopen()
    return RemovedResponse(forgotten=[display_path(path) for path in gone])


@router.get("/api/failures")
def failures(service: Served) -> list[FailureModel]:
    """List the files that could not be added, and why."""
    return [
        FailureModel(
            path=display_path(failure.path),
            name=display_name(failure.path, service.uploaded),
            reason=display_path(failure.reason),
            failed_at=failure.failed_at,
        )
        for failure in service.store.failures()
    ]


@router.post("/api/failures/retry", status_code=202)
def retry(service: Served) -> JobResponse:
    """Try again to add the files that failed, those inside of the allowed folders."""
    roots = [os.path.realpath(root) for root in service.options.roots]
    uploads = service.uploads.folder
    failed = [failure.path for failure in service.store.failures()]
    mine = [path for path in failed if resolves_within(path, roots) or Path(path).parent == uploads]
    if not mine:
        raise Problem(404, "nothing_failed", "there is nothing to try again in the folders of this page")
    request = {"paths": mine, "retry_failed": True, "within": [*roots, os.fspath(uploads)]}
    return JobResponse.of(service.jobs.put("add", f"Trying {len(mine)} again", request))


def _state(service: Service, content: str, analysis: str) -> FileState:
    """Return what there is to know about a file before it is searched for."""
    stored = files_of(service.store, content)
    if not any(is_imported(path) or os.path.exists(path) for path, _ in stored):  # noqa: PTH110
        return "missing"
    if content not in service.live.now.searcher.snapshot:
        return "preparing"
    return "quick" if analysis == "quick" else "ready"
