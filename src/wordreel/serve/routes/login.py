"""A token for a cookie."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio.to_thread
from fastapi import APIRouter, Request, Response

from wordreel.serve.access.sessions import COOKIE, LASTS
from wordreel.serve.problems import Problem
from wordreel.serve.routes import Served, errors
from wordreel.serve.schemas_library import LoginRequest, OkResponse

if TYPE_CHECKING:
    from wordreel.serve.access.tokens import TokenVerifier

router = APIRouter(tags=["access"])


@router.post("/api/login", response_model=OkResponse, responses=errors())
async def login(body: LoginRequest, service: Served, request: Request, response: Response) -> OkResponse:
    """Log in with the server's token."""
    verifier: TokenVerifier | None = request.app.state.verifier
    if verifier is None:
        return OkResponse()
    if not await anyio.to_thread.run_sync(verifier.verify, body.token):
        raise Problem(401, "wrong_token", "that is not the token of this server", "token")
    response.set_cookie(
        COOKIE,
        service.sessions.open(),
        max_age=int(LASTS),
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https" or request.headers.get("origin", "").startswith("https:"),
        path="/",
    )
    return OkResponse()


@router.post("/api/logout", response_model=OkResponse, responses=errors())
async def logout(service: Served, request: Request, response: Response) -> OkResponse:
    """End this session."""
    service.sessions.close(request.cookies.get(COOKIE, ""))
    response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
    return OkResponse()
