"""One shape for every error: `{"error": {"code", "message", "field", "next_step"}}`."""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import asdict
from typing import TYPE_CHECKING

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import HTTPException as FastHTTPException
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from wordreel.errors import (
    BankError,
    DiskError,
    HubnessError,
    IndexServerError,
    LibraryBusy,
    LibraryReadOnly,
    MediaError,
    NextStep,
    NotMedia,
    OverLimit,
    QueryError,
    WeightsError,
    WordreelError,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

log = logging.getLogger("wordreel.serve")


class Problem(FastHTTPException):
    """A request that is answered with an error: an `HTTPException`, which FastAPI lets through everywhere.

    `message` is for people and ends with the next step; `next_step` is the same for programs.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        field: str | None = None,
        headers: Mapping[str, str] | None = None,
        next_step: NextStep | None = None,
    ) -> None:
        self.code, self.field, self.next_step = code, field, next_step
        self.message = with_next_step(message, next_step)
        super().__init__(status, self.message, dict(headers or {}))

    def response(self) -> Response:
        return error_response(
            self.status_code, self.code, self.message, self.field, self.headers, self.next_step
        )


def with_next_step(message: str, next_step: NextStep | None) -> str:
    """
    >>> with_next_step("a minimum confidence needs a query bank", NextStep("build one", page="Hubness"))
    'a minimum confidence needs a query bank; build one in Hubness'
    """
    return f"{message}; {next_step.for_page()}" if next_step else message


def page_message(error: WordreelError) -> str:
    """An error's message with its next step in the words of the page."""
    return with_next_step(error.message, error.next_step)


def error_response(
    status: int,
    code: str,
    message: str,
    field: str | None = None,
    headers: Mapping[str, str] | None = None,
    next_step: NextStep | None = None,
) -> Response:
    """The response of an error. Only ASCII: a message may quote what no encoding can hold."""
    step = asdict(next_step) if next_step else None
    body = json.dumps({"error": {"code": code, "message": message, "field": field, "next_step": step}})
    return Response(body, status, dict(headers or {}), "application/json")


KINDS: tuple[tuple[type[WordreelError], int, str], ...] = (
    (LibraryBusy, 409, "library_busy"),
    (LibraryReadOnly, 403, "read_only"),
    (DiskError, 507, "disk_full"),
    (NotMedia, 415, "not_media"),
    (OverLimit, 413, "too_large"),
    (MediaError, 422, "broken_media"),
    (QueryError, 422, "bad_query"),
    (BankError, 422, "bad_bank"),
    (HubnessError, 422, "bad_normalisation"),
    (WeightsError, 503, "weights_missing"),
    (IndexServerError, 503, "index_unavailable"),
    (WordreelError, 409, "library_problem"),
)

CODES = {
    400: ("bad_request", "the request cannot be understood; see /api/openapi.json"),
    404: ("not_found", "there is nothing here; see /api/openapi.json for what there is"),
    405: ("method_not_allowed", "this address does not take that method; see /api/openapi.json"),
    413: ("too_large", "the request is too large; send less"),
    415: ("wrong_type", "the body has the wrong content type; send application/json"),
}

INTERNAL = "an unexpected error; the server's log has the details"


def problem_of(error: WordreelError) -> Problem:
    """The HTTP answer to an error of wordreel."""
    status, code = next((status, code) for kind, status, code in KINDS if isinstance(error, kind))
    field = error.field if isinstance(error, QueryError) else None
    return Problem(status, code, error.message, field, next_step=error.next_step)


def read_only() -> Problem:
    return Problem(403, "read_only", "this server is read-only; its owner can start it without --read-only")


def too_large(most: int) -> Problem:
    return Problem(
        413,
        "too_large",
        f"the body may have {most / 2**20:g} MiB; send less",
        headers={"connection": "close"},
    )


def install(app: FastAPI) -> None:
    """Answer every error of the application in the one shape."""

    @app.exception_handler(Problem)
    async def _problem(_: Request, error: Problem) -> Response:
        return error.response()

    @app.exception_handler(LibraryBusy)
    async def _busy(request: Request, error: LibraryBusy) -> Response:
        job = await asyncio.to_thread(request.app.state.service.jobs.running)
        if job is None:
            return problem_of(error).response()
        step = NextStep("wait until it has ended, or cancel it", page=f"Library (DELETE /api/jobs/{job.id})")
        message = f"job {job.id} ({job.title}) is writing to the library"
        return Problem(409, "library_busy", message, next_step=step).response()

    @app.exception_handler(WordreelError)
    async def _known(_: Request, error: WordreelError) -> Response:
        return problem_of(error).response()

    @app.exception_handler(RequestValidationError)
    async def _invalid(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        names = [str(part) for part in first["loc"] if part not in ("body", "query", "path")]
        field = ".".join(names) or None
        text = f"{field}: {first['msg']}" if field else str(first["msg"])
        return error_response(422, "invalid", f"{text}; see /api/openapi.json", field)

    @app.exception_handler(HTTPException)
    async def _http(_: Request, error: HTTPException) -> Response:
        code, message = CODES.get(error.status_code, ("refused", str(error.detail)))
        return error_response(error.status_code, code, message, headers=error.headers)

    @app.exception_handler(ClientDisconnect)
    async def _gone(_: Request, error: ClientDisconnect) -> Response:
        return error_response(400, "disconnected", "the request ended before its body was complete")

    @app.exception_handler(Exception)
    async def _unknown(_: Request, error: Exception) -> Response:
        log.error("a request failed: %r", error, exc_info=error)
        return error_response(500, "internal", INTERNAL)
