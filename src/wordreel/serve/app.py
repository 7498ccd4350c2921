"""The application (routes, errors, the page, the guard in front of them) and the server that runs it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp

from wordreel import __version__
from wordreel.serve import problems
from wordreel.serve.guard import Guard
from wordreel.serve.options import Options
from wordreel.serve.page_files import page_files
from wordreel.serve.routes import (
    ERRORS,
    banks,
    exports,
    jobs,
    media,
    people,
    search,
    server,
    tags,
    videos,
)
from wordreel.serve.service import Service

KEEP_ALIVE = 15  # seconds
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
    for part in (search, videos, media, exports, tags, people, jobs, banks, server):
        app.include_router(part.router)
    app.mount("/", page_files())
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
