"""The application (routes, errors, the page, the guard in front of them) and the server that runs it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import FileResponse, Response
from starlette.staticfiles import NotModifiedResponse, StaticFiles
from starlette.types import ASGIApp, Scope

from wordreel import __version__
from wordreel.serve import problems
from wordreel.serve.guard import Guard
from wordreel.serve.options import Options
from wordreel.serve.routes import (
    ERRORS,
    banks,
    exports,
    jobs,
    media,
    people,
    search,
    status,
    tags,
    videos,
)
from wordreel.serve.service import Service

KEEP_ALIVE = 15  # seconds
SMALLEST_GZIP = 512  # bytes; below that compressing gains nothing
TYPES = {".js": "text/javascript"}  # which Python 3.11 calls application/javascript
MAX_REQUESTS = 512  # connections and requests of one process at the same time
ABOUT = (
    "Find the moment in your videos with words. Every error is "
    '`{"error": {"code", "message", "field", "next_step"}}`; the message says what to do next.'
)


def build_app(service: Service) -> ASGIApp:
    """Return the ASGI application for a service."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await service.start()
        try:
            yield
        finally:
            await service.stop()

    app = FastAPI(
        title="wordreel",
        version=__version__,
        description=ABOUT,
        openapi_url="/api/openapi.json",
        docs_url=None,  # would be loaded from another host
        redoc_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
        responses=ERRORS,
    )
    app.state.service = service
    problems.install(app)
    for part in (search, videos, media, exports, tags, people, jobs, banks, status):
        app.include_router(part.router)
    page = PageFiles(packages=[("wordreel.serve", "page")], html=True)
    app.mount("/", GZipMiddleware(page, SMALLEST_GZIP))
    guard = Guard(app, service.options, service.sessions, service.metrics)
    app.state.verifier = guard.verifier
    return guard


def build_server(service: Service) -> uvicorn.Server:
    """Return a uvicorn server for a service, not yet started."""
    return uvicorn.Server(uvicorn.Config(build_app(service), **uvicorn_settings(service.options)))


def uvicorn_settings(options: Options) -> dict[str, Any]:
    """Return the arguments of uvicorn for these options."""
    return {
        "host": options.host,
        "port": options.port,
        "ws": "none",
        "lifespan": "on",
        "log_level": "warning",
        "access_log": False,
        "server_header": False,
        "proxy_headers": False,
        "limit_concurrency": MAX_REQUESTS,
        "timeout_keep_alive": KEEP_ALIVE,
        "timeout_graceful_shutdown": 5,
        "ssl_certfile": options.certificate,
        "ssl_keyfile": options.key,
    }


class PageFiles(StaticFiles):
    """Static files whose ETag is the hash of their bytes.

    Starlette's own is computed from size and time, which installers set to the same value in every version.
    """

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Return a file of the page; a browser at any other address gets the page, which says so."""
        try:
            return await super().get_response(path, scope)
        except HTTPException as error:
            wants_page = "text/html" in Headers(scope=scope).get("accept", "")
            if error.status_code != 404 or not wants_page or path.startswith(("api/", "media/")):
                raise
            full_path, status = self.lookup_path("index.html")
            if status is None:
                raise
            return self.file_response(full_path, status, scope, 404)

    def file_response(
        self,
        full_path: str | os.PathLike[str],
        stat_result: os.stat_result,
        scope: Scope,
        status_code: int = 200,
    ) -> Response:
        """Return a file with its ETag, or 304 to a browser that has it."""
        path = Path(full_path)
        tag = _etag(path, stat_result.st_size, stat_result.st_mtime_ns)
        response = FileResponse(
            path,
            status_code,
            {"etag": f'"{tag}"', "cache-control": "no-cache", "vary": "Accept-Encoding"},
            TYPES.get(path.suffix),
            stat_result=stat_result,
        )
        if self.is_not_modified(response.headers, Headers(scope=scope)):
            return NotModifiedResponse(response.headers)
        return response


@lru_cache(256)
def _etag(path: Path, size: int, mtime_ns: int) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:32]
