"""Routes whose query parameters are one model, read without FastAPI's look at every field in every request.

FastAPI inspects the annotation of each of twenty fields each time, which takes longer than everything else
that a search asked a moment ago needs. The documentation of such a route is still FastAPI's.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, get_origin, get_type_hints

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.datastructures import QueryParams


class QueryModelRoute(APIRoute):
    """A route that reads the `parameters` of an `endpoint(parameters, service, request)` by itself; any other
    endpoint is FastAPI's."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        model = get_type_hints(self.endpoint).get("parameters")
        if model is None:
            return super().get_route_handler()
        lists = list_fields(model)

        async def handle(request: Request) -> Response:
            parameters = read_parameters(model, lists, request.query_params)
            response: Response = await self.endpoint(parameters, request.app.state.service, request)
            return response

        return handle


def list_fields(model: type[BaseModel]) -> frozenset[str]:
    """The fields that may be given several times."""
    return frozenset(
        name for name, field in model.model_fields.items() if get_origin(field.annotation) is list
    )


def read_parameters(model: type[BaseModel], lists: frozenset[str], given: QueryParams) -> BaseModel:
    """The parameters as their model; of one that is given several times and is no list, the last counts.

    Raises:
        RequestValidationError: Some are missing, wrong, or not known.
    """
    values: dict[str, Any] = {}
    for name in given:
        every = given.getlist(name)
        known = name in model.model_fields
        values[name] = every if name in lists or (not known and len(every) > 1) else every[-1]
    try:
        return model.model_validate(values)
    except ValidationError as error:
        found = [{**one, "loc": ("query", *one["loc"])} for one in error.errors(include_url=False)]
        raise RequestValidationError(found) from None
