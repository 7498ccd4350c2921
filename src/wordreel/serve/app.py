"""The application: routes, errors, the page, and the guard in front of all of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.types import ASGIApp

from wordreel import __version__
from wordreel.serve import problems
from wordreel.serve.access.guard import Guard
from wordreel.serve.access.headers import SecurityHeaders
from wordreel.serve.page_files import page_files
from wordreel.serve.routes import about, banks, jobs, login, media, search, videos
from wordreel.serve.service import Service

ABOUT = (
    "Find the moment in your videos with words. Every error is "
    '`{"error": {"code", "message", "field", "next_step"}}`; the message says what to do next.'
)


def build(service: Service) -> ASGIApp:
    """Everything, ready for a server."""

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
    )
    app.state.service = service
    problems.install(app)
    for part in (search, videos, media, jobs, banks, about, login):
        app.include_router(part.router)
    app.mount("/", page_files())
    guard = Guard(app, service.options, service.sessions, service.metrics)
    app.state.verifier = guard.verifier
    return SecurityHeaders(guard)
