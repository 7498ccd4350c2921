"""Queries as JSON values and back: only what differs from the defaults is written."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields
from datetime import datetime
from os import fspath
from typing import Any

from wordreel.errors import QueryError
from wordreel.search.filters import Filters
from wordreel.search.query import Query, VideoMoment

TEXTS = {"text", "then", "norm", "bank", "folder", "expert", "kind"}
NUMBERS = {"beta", "min_confidence", "min_duration", "max_duration"}
FLAGS = {"moments", "has_speech", "has_text"}
DATES = {"after", "before"}
LISTS = {"tags", "people", "phrases", "then_phrases", "without"}
LIKE = "like"
NOT_SAVED = ("filters", "image", "compare", "limit", "offset")
LONGEST_LIST = 20


def query_to_json(query: Query) -> dict[str, Any]:
    """The query and its filters, flat, without how many hits it asks for.

    Raises:
        QueryError: It asks with a picture, or compares: neither can be saved.
    """
    if query.image is not None or query.compare:
        raise QueryError("a search by a picture file or a comparison cannot be saved", field="image")
    values: dict[str, Any] = {}
    pairs = [(one, query) for one in fields(Query) if one.name not in NOT_SAVED]
    for one, holder in [*pairs, *((one, query.filters) for one in fields(Filters))]:
        value = getattr(holder, one.name)
        if value in (one.default, ()):
            continue
        if isinstance(value, VideoMoment):
            path = None if value.path is None else fspath(value.path)
            value = {"path": path, "second": value.second, "content": value.content}
        elif isinstance(value, datetime):
            value = value.isoformat()
        elif isinstance(value, tuple):
            value = list(value)
        values[one.name] = fspath(value) if one.name == "folder" else value
    return values


def query_from_json(values: Mapping[str, Any]) -> Query:
    """A query from its JSON values.

    Raises:
        QueryError: There is an unknown field, or a value of the wrong kind.
    """
    return Query.build(**{name: _value(name, value) for name, value in values.items()})


def _value(name: str, value: Any) -> Any:
    if name in TEXTS and isinstance(value, str):
        return value
    if name in NUMBERS and _is_number(value):
        return float(value)
    if name in FLAGS and isinstance(value, bool):
        return value
    if name in LISTS and isinstance(value, list) and len(value) <= LONGEST_LIST:
        return tuple(str(one) for one in value)
    if name in DATES and isinstance(value, str):
        with suppress(ValueError):
            return datetime.fromisoformat(value)
    if name == LIKE and isinstance(value, dict) and _is_moment(value):
        return VideoMoment(**value)
    raise QueryError(f"a query has no {name!r} such as {value!r:.60}", field=name)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_moment(value: dict[str, Any]) -> bool:
    texts = [value.get("path"), value.get("content")]
    known = value.keys() <= {"path", "second", "content"}
    second = value.get("second")
    return (
        known and all(isinstance(one, str | None) for one in texts) and (second is None or _is_number(second))
    )
