"""Adding to the library, and the jobs that do it."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi import Path as InPath
from starlette.datastructures import UploadFile
from starlette.responses import StreamingResponse

from wordreel.catalogue.jobs import Job
from wordreel.catalogue.uploads import upload_names
from wordreel.serve import schemas
from wordreel.serve.display import display_path
from wordreel.serve.folders import allowed_path, list_folder
from wordreel.serve.problems import Problem, read_only
from wordreel.serve.routes import Served, errors
from wordreel.serve.schemas import JobResponse
from wordreel.serve.schemas_library import (
    FolderEntry,
    FolderPath,
    FolderRequest,
    FolderResponse,
    JobsResponse,
    PauseRequest,
    UploadModel,
    UploadResponse,
)
from wordreel.serve.service import Service

router = APIRouter(tags=["library"])

JobId = Annotated[int, InPath(ge=1, le=2**62)]
LOOK_EVERY = 0.25  # seconds
HEARTBEAT = 15.0  # seconds without news after which a sign of life is sent
MAX_LISTENERS = 64
CHUNK = 2**20  # bytes
BODY = {"schema": {"type": "string", "format": "binary"}}
FORM = {"schema": {"type": "object", "required": ["file"], "properties": {"file": BODY["schema"]}}}
EVENT = {
    "schema": {
        "type": "object",
        "required": ["event", "data"],
        "properties": {
            "event": {"enum": ["progress", "done"]},
            "data": {"type": "string", "description": "the job as JSON"},
        },
    }
}
UPLOAD_DOCS = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": BODY, "multipart/form-data": FORM},
    }
}


@router.get("/api/folders", response_model=FolderResponse, responses=errors(404))
async def folder(
    service: Served,
    path: Annotated[
        FolderPath | None, Query(description="one of the roots, or a folder inside of it")
    ] = None,
) -> FolderResponse:
    """The folders inside of one that may be added; without a path, the roots."""
    if service.options.read_only:
        raise read_only()
    if path is None:
        folders = [
            FolderEntry(path=display_path(str(root)), name=display_path(str(root)))
            for root in service.options.roots
        ]
        return FolderResponse(path=None, parent=None, folders=folders, files=0)
    options = service.options
    found = await asyncio.to_thread(list_folder, options.roots, service.store.path, path, options.private)
    return FolderResponse(
        path=display_path(str(found.path)),
        parent=None if found.parent is None else display_path(str(found.parent)),
        folders=[
            FolderEntry(path=display_path(str(one)), name=display_path(one.name)) for one in found.folders
        ],
        files=found.files,
    )


@router.post("/api/folders", status_code=202, response_model=JobResponse, responses=errors(404, 409))
async def add_folder(body: FolderRequest, service: Served) -> JobResponse:
    """Add a folder (or a file) under one of the allowed roots, or bring it up to date."""
    options, library = service.options, service.store.path
    path = await asyncio.to_thread(allowed_path, options.roots, library, body.path, options.private)
    request = {
        "paths": [os.fspath(path)],
        "retry_failed": True,
        "within": [os.fspath(root) for root in service.options.roots],  # also what links lead to
    }
    job = await asyncio.to_thread(service.jobs.put, "add", display_path(str(path)), request)
    return JobResponse(job=job_model(job))


@router.post(
    "/api/uploads", status_code=202, response_model=UploadResponse, responses=errors(409, 507),
    openapi_extra=UPLOAD_DOCS,
)  # fmt: skip
async def upload(
    request: Request,
    service: Served,
    name: Annotated[str, Query(max_length=1000, description="what the file is called")] = "",
    purpose: Annotated[Literal["add", "query"], Query(description="query: only to ask with")] = "add",
) -> UploadResponse:
    """Send a file, to be added or to ask with. What it is, its bytes tell, not its name."""
    if purpose == "add" and service.options.read_only:
        raise read_only()
    if request.headers.get("content-type", "").lower().startswith("multipart/"):
        async with request.form(max_files=1) as form:
            file = form.get("file")
            if not isinstance(file, UploadFile):
                raise Problem(422, "invalid", "the form has no file; send one in the field `file`", "file")
            arrived = await service.uploads.take(_chunks(file), name or file.filename or "", purpose == "add")
    else:
        arrived = await service.uploads.take(request.stream(), name, purpose == "add")
    job = None
    if purpose == "add":
        service.uploaded = await asyncio.to_thread(upload_names, service.store)
        job = await asyncio.to_thread(
            service.jobs.put, "add", arrived.name, {"paths": [str(arrived.path)], "retry_failed": True}
        )
    return UploadResponse(
        upload=UploadModel(
            id=arrived.content,
            name=arrived.name,
            kind=arrived.info.kind,
            duration=arrived.info.duration,
            bytes=arrived.size,
        ),
        job=None if job is None else job_model(job),
    )


async def _chunks(file: UploadFile) -> AsyncIterator[bytes]:
    while chunk := await file.read(CHUNK):
        yield chunk


@router.get("/api/jobs", response_model=JobsResponse, responses=errors())
async def jobs(service: Served) -> JobsResponse:
    """The latest jobs, newest first."""
    latest = await asyncio.to_thread(service.jobs.latest)
    return JobsResponse(jobs=[job_model(job) for job in latest], paused=service.jobs.signals.paused)


@router.put("/api/jobs", response_model=JobsResponse, responses=errors())
async def pause(body: PauseRequest, service: Served) -> JobsResponse:
    """Pause all jobs, or resume them. What a paused job has done so far stays; a restart resumes it."""
    await asyncio.to_thread(service.jobs.pause, body.paused)
    return await jobs(service)


@router.get("/api/jobs/{number}", response_model=JobResponse, responses=errors(404))
async def job(number: JobId, service: Served) -> JobResponse:
    """One job as it is now."""
    return JobResponse(job=job_model(await asyncio.to_thread(service.jobs.get, number)))


@router.delete("/api/jobs/{number}", response_model=JobResponse, responses=errors(404))
async def cancel(number: JobId, service: Served) -> JobResponse:
    """Stop a job. What it added so far stays in the library."""
    return JobResponse(job=job_model(await asyncio.to_thread(service.jobs.cancel, number)))


@router.get(
    "/api/jobs/{number}/events",
    response_class=Response,
    responses={200: {"content": {"text/event-stream": EVENT}}, **errors(404)},
)
async def events(number: JobId, service: Served) -> Response:
    """The job as server-sent events: `progress` whenever it moves, `done` at the end."""
    first = await asyncio.to_thread(service.jobs.get, number)
    if service.listeners >= MAX_LISTENERS:
        raise Problem(429, "too_many_requests", "too many are watching; reload the page later")
    return StreamingResponse(_events(service, first), media_type="text/event-stream")


async def _events(service: Service, job: Job) -> AsyncIterator[bytes]:
    last, quiet = "", 0.0
    service.listeners += 1
    try:
        while True:
            data = json.dumps(job_model(job).model_dump(mode="json"))
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


def job_model(job: Job) -> schemas.JobModel:
    facts = asdict(job)
    del facts["request"]
    return schemas.JobModel(**facts)
