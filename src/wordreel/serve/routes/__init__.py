"""One file per capability."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Annotated, Any, ParamSpec, TypeVar

from fastapi import Depends, Path, Request

from wordreel.serve.schemas import CONTENT, ErrorResponse
from wordreel.serve.service import Service

P = ParamSpec("P")
T = TypeVar("T")


async def _service(request: Request) -> Service:  # a plain function would be called in another thread
    service: Service = request.app.state.service
    return service


Served = Annotated[Service, Depends(_service)]
ContentPath = Annotated[str, Path(pattern=CONTENT, description="the hash of the file's bytes")]
Number = Annotated[int, Path(ge=1, le=2**62)]

_REFUSED: dict[str, Any] = {"model": ErrorResponse, "description": "refused; the message says why"}
ERRORS: dict[int | str, dict[str, Any]] = {"4XX": _REFUSED, "5XX": _REFUSED}
"""The errors of every route, for the documentation."""


def in_pool(name: str) -> Callable[[Callable[P, T]], Callable[P, Awaitable[T]]]:
    """Run a route in the threads of one of the service's pools; other routes run in FastAPI's own."""

    def decorated(route: Callable[P, T]) -> Callable[P, Awaitable[T]]:
        @wraps(route)
        async def pooled(*args: P.args, **kwargs: P.kwargs) -> T:
            service: Any = kwargs["service"]
            result: T = await service.pools[name](route, *args, **kwargs)
            return result

        return pooled

    return decorated


def client_of(request: Request) -> str:
    """Return who asks, for the query log."""
    return str(request.scope.get("state", {}).get("client", "local"))


def binary(*media_types: str) -> dict[int | str, dict[str, Any]]:
    """Return the documentation of a route that answers with bytes."""
    content = {kind: {"schema": {"type": "string", "format": "binary"}} for kind in media_types}
    return {200: {"content": content, "description": "the bytes"}}
