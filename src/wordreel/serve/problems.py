"""One shape for every error: `{"error": {"code", "message", "field", "next_step"}}`."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

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
        """Return the response. Only ASCII: a message may quote what no encoding can hold."""
        step = asdict(self.next_step) if self.next_step else None
        error = {"code": self.code, "message": self.message, "field": self.field, "next_step": step}
        body = json.dumps({"error": error})
        return Response(body, self.status_code, dict(self.headers or {}), "application/json")


def with_next_step(message: str, next_step: NextStep | None) -> str:
    """Return a message that ends with what to do.

    >>> step = NextStep("build one", page="Settings → Ranking")
    >>> with_next_step("a minimum confidence needs a query bank", step)
    'a minimum confidence needs a query bank; build one in Settings → Ranking'
    """
    return f"{message}; {next_step.for_page()}" if next_step else message


def page_message(error: WordreelError) -> str:
    """Return an error's message with its next step in the words of the page."""
    return with_next_step(error.message, error.next_step)


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
    400: ("bad_request", "the request cannot be understood"),
    404: ("not_found", "there is nothing at this address"),
    405: ("method_not_allowed", "this address does not take that method"),
    413: ("too_large", "the request is too large; send less"),
    415: ("wrong_type", "the request has the wrong content type"),
}

INTERNAL = "something unexpected went wrong; try again, the server's log has the details"


def invalid_text(field: str | None, error: Mapping[str, Any]) -> str:
    """Say what is wrong with a field, without the words of the validator: no patterns, no types.

    >>> invalid_text("limit", {"type": "less_than_equal", "ctx": {"le": 200}})
    '“limit” must be at most 200'
    >>> invalid_text("path", {"type": "string_pattern_mismatch", "ctx": {"pattern": "^/"}})
    '“path” is not written as it should be'
    """
    name, limits = f"“{field}”" if field else "the request", error.get("ctx", {})
    if error["type"] == "value_error":  # ours, in words
        return f"{name}: {limits.get('error', '')}"
    words = {
        "missing": "is missing",
        "extra_forbidden": "is not known here",
        "json_invalid": "cannot be read",
        "string_too_long": f"is longer than {limits.get('max_length')} characters",
        "string_too_short": "is empty",
        "too_long": f"has more than {limits.get('max_length')} entries",
        "too_short": "is empty",
        "greater_than": f"must be more than {limits.get('gt')}",
        "greater_than_equal": f"must be at least {limits.get('ge')}",
        "less_than": f"must be less than {limits.get('lt')}",
        "less_than_equal": f"must be at most {limits.get('le')}",
        "literal_error": f"must be one of {limits.get('expected')}",
    }
    return f"{name} {words.get(error['type'], 'is not written as it should be')}"


def problem_of(error: WordreelError) -> Problem:
    """Return the HTTP answer to an error of wordreel."""
    status, code = next((status, code) for kind, status, code in KINDS if isinstance(error, kind))
    field = error.field if isinstance(error, QueryError) else None
    return Problem(status, code, error.message, field, next_step=error.next_step)


def read_only() -> Problem:
    """Return the answer to a change on a read-only server."""
    return Problem(
        403,
        "read_only",
        "this library can only be looked at from here; its owner can allow changes when starting the server",
    )


def too_large(most: int) -> Problem:
    """Return the answer to a body of more than so many bytes."""
    message = f"at most {most / 2**20:g} MiB may be sent at once"
    return Problem(413, "too_large", message, headers={"connection": "close"})


def install(app: FastAPI) -> None:
    """Answer every error of the application in the one shape."""

    async def answer(request: Request, error: Exception) -> Response:
        if isinstance(error, LibraryBusy):
            job = await asyncio.to_thread(request.app.state.service.jobs.running)
            if job is not None:
                step = NextStep("wait until it has ended, or cancel it", page="Library")
                message = f"the library is being written to ({job.title})"
                return Problem(409, "library_busy", message, next_step=step).response()
        return as_problem(error).response()

    for kind in (WordreelError, RequestValidationError, HTTPException, ClientDisconnect, Exception):
        app.add_exception_handler(kind, answer)


def as_problem(error: Exception) -> Problem:
    """Return the answer to any error."""
    match error:
        case Problem():
            return error
        case WordreelError():
            return problem_of(error)
        case RequestValidationError():
            first = error.errors()[0]
            names = [] if first["type"] == "json_invalid" else [str(part) for part in first["loc"][1:]]
            field = ".".join(names) or None
            return Problem(422, "invalid", invalid_text(field, first), field)
        case HTTPException():
            code, message = CODES.get(error.status_code, ("refused", str(error.detail)))
            return Problem(error.status_code, code, message, headers=error.headers)
        case ClientDisconnect():
            return Problem(400, "disconnected", "the request ended before its body was complete")
    log.error("a request failed: %r", error, exc_info=error)
    return Problem(500, "internal", INTERNAL)
