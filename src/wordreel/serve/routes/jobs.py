"""Adding to the library, and the jobs that do it."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response
from pydantic import AfterValidator, BaseModel, Field
from starlette.datastructures import UploadFile
from starlette.responses import StreamingResponse

from wordreel.catalogue.jobs import Job, upload_names
from wordreel.serve.display import display_path
from wordreel.serve.folders import FolderListing, allowed_path, list_folder, list_roots
from wordreel.serve.problems import Problem, read_only
from wordreel.serve.routes import Number, Served
from wordreel.serve.schemas import JobModel, JobResponse, RequestModel
from wordreel.serve.service import Service

router = APIRouter(tags=["library"])

LOOK_EVERY = 0.25  # seconds
HEARTBEAT = 15.0  # seconds without news after which a sign of life is sent
MAX_LISTENERS = 64
CHUNK = 2**20  # bytes
BINARY = {"type": "string", "format": "binary"}
FORM = {"type": "object", "required": ["file"], "properties": {"file": BINARY}}
UPLOAD_BODY = {
    "required": True,
    "content": {"application/octet-stream": {"schema": BINARY}, "multipart/form-data": {"schema": FORM}},
}


def _whole_path(value: str) -> str:
    if not value.startswith(("/", "~")) or "\x00" in value:
        raise ValueError("write the whole path, such as ~/Videos")
    return value


FolderPath = Annotated[str, Field(max_length=4096), AfterValidator(_whole_path)]


class FolderRequest(RequestModel):
    """A folder to add."""

    path: FolderPath = Field(examples=["~/Videos"])


class WatchRequest(FolderRequest):
    """A folder to watch, or to watch no longer."""

    on: bool


class WatchedResponse(BaseModel):
    """The folders that the server watches."""

    folders: list[str]


class UploadModel(BaseModel):
    """A file that was uploaded."""

    id: str
    name: str
    kind: str
    duration: float
    bytes: int


class UploadResponse(BaseModel):
    """An uploaded file, and the job that adds it."""

    upload: UploadModel
    job: JobModel | None


class JobsResponse(BaseModel):
    """The latest jobs."""

    jobs: list[JobModel]
    paused: bool = Field(description="no job runs until they are resumed")


class PauseRequest(RequestModel):
    """Whether jobs are to pause."""

    paused: bool


class JobEvent(BaseModel):
    """A server-sent event; `data` is the job as JSON."""

    event: Literal["progress", "done"]
    data: str


@router.get("/api/folders")
def folder(
    service: Served,
    path: Annotated[
        FolderPath | None, Query(description="one of the roots, or a folder inside of it")
    ] = None,
) -> FolderListing:
    """List the folders inside of one that may be added; without a path, the roots."""
    options = service.options
    if options.read_only:
        raise read_only()
    if path is None:
        return list_roots(options.roots)
    return list_folder(options.roots, service.store.path, path, options.private)


@router.post("/api/folders", status_code=202)
def add_folder(body: FolderRequest, service: Served) -> JobResponse:
    """Add a folder (or a file) under one of the allowed roots, or bring it up to date."""
    options = service.options
    path = allowed_path(options.roots, service.store.path, body.path, options.private)
    request = {
        "paths": [os.fspath(path)],
        "retry_failed": True,
        "within": [os.fspath(root) for root in options.roots],  # also what links lead to
    }
    return JobResponse.of(service.jobs.put("add", display_path(str(path)), request))


@router.get("/api/watched")
def watched(service: Served) -> WatchedResponse:
    """List the folders whose new and changed files are added by themselves."""
    return WatchedResponse(folders=[display_path(folder) for folder in service.watched.folders])


@router.put("/api/watched")
def watch(body: WatchRequest, service: Served) -> WatchedResponse:
    """Watch a folder under one of the allowed roots while the server runs, or watch it no longer."""
    options = service.options
    known = next((path for path in service.watched.folders if display_path(path) == body.path), None)
    if body.on or known is None:
        known = str(allowed_path(options.roots, service.store.path, body.path, options.private))
    service.watched.set(known, body.on)
    return watched(service)


@router.post("/api/uploads", status_code=202, openapi_extra={"requestBody": UPLOAD_BODY})
async def upload(
    request: Request,
    service: Served,
    name: Annotated[str, Query(max_length=1000, description="what the file is called")] = "",
    purpose: Annotated[Literal["add", "query"], Query(description="query: only to ask with")] = "add",
) -> UploadResponse:
    """Send a file, to be added or to ask with. What it is, its bytes tell, not its name."""
    add = purpose == "add"
    if add and service.options.read_only:
        raise read_only()
    if request.headers.get("content-type", "").lower().startswith("multipart/"):
        async with request.form(max_files=1) as form:
            file = form.get("file")
            if not isinstance(file, UploadFile):
                raise Problem(422, "invalid", "the form has no file; send one in the field `file`", "file")
            stored = await service.uploads.take(_chunks(file), name or file.filename or "", add)
    else:
        stored = await service.uploads.take(request.stream(), name, add)
    job = None
    if add:
        service.uploaded = await asyncio.to_thread(upload_names, service.store)
        todo = {"paths": [str(stored.path)], "retry_failed": True}
        job = JobModel.of(await asyncio.to_thread(service.jobs.put, "add", stored.name, todo))
    uploaded = UploadModel(
        id=stored.content,
        name=stored.name,
        kind=stored.info.kind,
        duration=stored.info.duration,
        bytes=stored.size,
    )
    return UploadResponse(upload=uploaded, job=job)


async def _chunks(file: UploadFile) -> AsyncIterator[bytes]:
    while chunk := await file.read(CHUNK):
        yield chunk


@router.get("/api/jobs")
def jobs(service: Served) -> JobsResponse:
    """List the latest jobs, newest first."""
    latest = [JobModel.of(job) for job in service.jobs.latest()]
    return JobsResponse(jobs=latest, paused=service.jobs.signals.paused)


@router.put("/api/jobs")
def pause(body: PauseRequest, service: Served) -> JobsResponse:
    """Pause all jobs, or resume them. What a paused job has done so far stays; a restart resumes it."""
    service.jobs.pause(body.paused)
    return jobs(service)


@router.get("/api/jobs/{number}")
def job(number: Number, service: Served) -> JobResponse:
    """Return one job as it is now."""
    return JobResponse.of(service.jobs.get(number))


@router.delete("/api/jobs/{number}")
def cancel(number: Number, service: Served) -> JobResponse:
    """Stop a job. What it added so far stays in the library."""
    return JobResponse.of(service.jobs.cancel(number))


@router.get(
    "/api/jobs/{number}/events",
    response_class=Response,
    responses={200: {"content": {"text/event-stream": {"schema": JobEvent.model_json_schema()}}}},
)
async def events(number: Number, service: Served) -> Response:
    """Send the job as server-sent events: `progress` whenever it moves, `done` at the end."""
    first = await asyncio.to_thread(service.jobs.get, number)
    if service.listeners >= MAX_LISTENERS:
        raise Problem(429, "too_many_requests", "too many are watching; reload the page later")
    return StreamingResponse(_events(service, first), media_type="text/event-stream")


async def _events(service: Service, job: Job) -> AsyncIterator[bytes]:
    last, quiet = "", 0.0
    service.listeners += 1
    try:
        while True:
            data = json.dumps(JobModel.of(job).model_dump(mode="json"))
            if job.ended:
                yield f"event: done\ndata: {data}\n\n".encode()
                return
            if data != last:
                yield f"event: progress\ndata: {data}\n\n".encode()
                last, quiet = data, 0.0
            elif quiet > HEARTBEAT:
                yield b": still here\n\n"
                quiet = 0.0
            await asyncio.sleep(LOOK_EVERY)
            quiet += LOOK_EVERY
            job = await asyncio.to_thread(service.jobs.get, job.id)
    finally:
        service.listeners -= 1
