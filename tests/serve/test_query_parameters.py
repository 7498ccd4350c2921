"""Query parameters read by a model's own validator are those that FastAPI reads, and are refused as there."""

import asyncio
import json
from typing import Annotated
from urllib.parse import urlencode

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

pytest.importorskip("fastapi")

from fastapi import APIRouter, FastAPI, Query, Request
from fastapi.responses import JSONResponse

from wordreel.serve import problems
from wordreel.serve.query_parameters import QueryModelRoute
from wordreel.serve.routes import Served
from wordreel.serve.schemas import SearchParameters

NAMES = [*SearchParameters.model_fields, "unknown", "Text", ""]
VALUES = ["", " ", "red", "1", "-1", "0.5", "nan", "true", "null", "2020-01-01", "/films", "video", "ä", "[]"]


async def endpoint(
    parameters: Annotated[SearchParameters, Query()], service: Served, request: Request
) -> JSONResponse:
    return JSONResponse(parameters.model_dump(mode="json"))


def application():
    app, fast = FastAPI(), APIRouter(route_class=QueryModelRoute)
    app.state.service = None
    problems.install(app)
    fast.get("/fast")(endpoint)
    app.get("/slow")(endpoint)
    app.include_router(fast)
    return app


APP = application()


def answer(path, query):
    scope = {"type": "http", "method": "GET", "path": path, "query_string": query, "headers": []}
    messages = []

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        messages.append(message)

    asyncio.run(APP(scope, receive, send))
    return messages[0]["status"], json.loads(messages[1]["body"])


@given(st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(VALUES)), max_size=5))
@example([("text", "red"), ("tags", "a"), ("tags", "b"), ("limit", "1"), ("limit", "2")])
@example([("unknown", "a"), ("unknown", "b")])
@example([("text", "red"), ("limit", "0"), ("offset", "-1")])
def test_parameters_are_those_that_fastapi_reads(given):
    query = urlencode(given).encode()
    assert answer("/fast", query) == answer("/slow", query)


def test_what_is_read_and_what_is_refused():
    status, read = answer("/fast", b"text=red&tags=a&tags=b&limit=1&limit=2")
    assert (status, read["text"], read["tags"], read["limit"]) == (200, "red", ["a", "b"], 2)
    status, refused = answer("/fast", b"text=red&limit=0")
    assert (status, refused["error"]["field"]) == (422, "limit")


def test_the_documentation_is_that_of_fastapi():
    paths = APP.openapi()["paths"]
    fast, slow = paths["/fast"]["get"], paths["/slow"]["get"]
    assert fast["parameters"] == slow["parameters"]
    assert len(fast["parameters"]) == len(SearchParameters.model_fields)
