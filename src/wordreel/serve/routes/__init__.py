"""One file per capability."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Path, Request

from wordreel.serve.schemas import CONTENT, ErrorResponse
from wordreel.serve.service import Service


async def _service(request: Request) -> Service:  # a plain function would be called in another thread
    service: Service = request.app.state.service
    return service


Served = Annotated[Service, Depends(_service)]
ContentPath = Annotated[str, Path(pattern=CONTENT, description="the hash of the file's bytes")]


def errors(*codes: int) -> dict[int | str, dict[str, Any]]:
    """The errors of a route, for its documentation."""
    always = (400, 401, 403, 408, 413, 415, 422, 429, 503)
    return {
        code: {"model": ErrorResponse, "description": "refused; the message says why"}
        for code in (*always, *codes)
    }


def client_of(request: Request) -> str:
    """Who asks, for rates and logs."""
    return str(request.scope.get("state", {}).get("client", "local"))
