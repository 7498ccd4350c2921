"""One shape for every error: `{"error": {"code", "message", "field"}}`, whoever noticed it."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import HTTPException as FastHTTPException
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from wordreel.errors import (
    BankError,
    HubnessError,
    LibraryBusy,
    MediaError,
    NotMedia,
    OverLimit,
    QueryError,
    WeightsError,
    WordreelError,
)
from wordreel.serve.hints import for_page

if TYPE_CHECKING:
    from collections.abc import Mapping

log = logging.getLogger("wordreel.serve")


class Problem(FastHTTPException):
    """A request that is answered with an error; of the one kind that FastAPI lets through everywhere."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        field: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(status, message, dict(headers or {}))
        self.code, self.message, self.field = code, message, field

    def response(self) -> Response:
        return answer(self.status_code, self.code, self.message, self.field, self.headers)


def answer(
    status: int,
    code: str,
    message: str,
    field: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """The response of an error. Only ASCII: a message may quote what no encoding can hold."""
    body = json.dumps({"error": {"code": code, "message": message, "field": field}})
    return Response(body, status, dict(headers or {}), "application/json")


KINDS: tuple[tuple[type[WordreelError], int, str], ...] = (
    (LibraryBusy, 409, "library_busy"),
    (NotMedia, 415, "not_media"),
    (OverLimit, 413, "too_large"),
    (MediaError, 422, "broken_media"),
    (QueryError, 422, "bad_query"),
    (BankError, 422, "bad_bank"),
    (HubnessError, 422, "bad_normalisation"),
    (WeightsError, 503, "weights_missing"),
    (WordreelError, 409, "library_problem"),
)

CODES = {
    400: ("bad_request", "the request cannot be understood; see /api/openapi.json"),
    404: ("not_found", "there is nothing here; see /api/openapi.json for what there is"),
    405: ("method_not_allowed", "this address does not take that method; see /api/openapi.json"),
    413: ("too_large", "the request is too large; send less"),
    415: ("wrong_type", "the body has the wrong content type; send application/json"),
}


def of(error: WordreelError) -> Problem:
    """What an error of wordreel is over HTTP."""
    status, code = next((status, code) for kind, status, code in KINDS if isinstance(error, kind))
    return Problem(status, code, for_page(str(error)))


def install(app: FastAPI) -> None:
    """Let every error leave in the one shape."""

    @app.exception_handler(Problem)
    async def _problem(_: Request, error: Problem) -> Response:
        return error.response()

    @app.exception_handler(WordreelError)
    async def _known(_: Request, error: WordreelError) -> Response:
        return of(error).response()

    @app.exception_handler(RequestValidationError)
    async def _invalid(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        place = [str(part) for part in first["loc"] if part not in ("body", "query", "path")]
        field = ".".join(place) or None
        said = f"{field}: {first['msg']}" if field else str(first["msg"])
        return answer(422, "invalid", f"{said}; see /api/openapi.json", field)

    @app.exception_handler(HTTPException)
    async def _http(_: Request, error: HTTPException) -> Response:
        code, message = CODES.get(error.status_code, ("refused", str(error.detail)))
        return answer(error.status_code, code, message, headers=error.headers)

    @app.exception_handler(Exception)
    async def _unknown(_: Request, error: Exception) -> Response:
        log.error("a request failed: %r", error, exc_info=error)
        return answer(500, "internal", "this should not have happened; the server's log says more")
