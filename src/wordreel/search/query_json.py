"""Queries as JSON values and back: only what differs from the defaults is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import Field
from datetime import datetime
from os import fspath
from typing import Any

from wordreel.errors import QueryError
from wordreel.search.query import Query, VideoMoment, question_fields
from wordreel.search.query_fields import query_field

LONGEST_LIST = 20


def query_to_json(query: Query) -> dict[str, Any]:
    """The query and its filters, flat, without how many hits it asks for.

    Raises:
        QueryError: It asks with a picture, or compares: neither can be saved.
    """
    if query.image is not None or query.compare:
        raise QueryError("a search by a picture file or a comparison cannot be saved", field="image")
    values: dict[str, Any] = {}
    for one in saved_fields():
        value = getattr(query.filters if hasattr(query.filters, one.name) else query, one.name)
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


def saved_fields() -> list[Field[Any]]:
    """The fields that a saved search stores; `second` is a part of `like`."""
    return [one for one in question_fields() if query_field(one).saved and one.name != "second"]


def query_from_json(values: Mapping[str, Any]) -> Query:
    """A query from its JSON values.

    Raises:
        QueryError: There is an unknown field, or a value of the wrong kind.
    """
    return Query.build(**{name: _value(name, value) for name, value in values.items()})


def _value(name: str, value: Any) -> Any:
    one = next((one for one in saved_fields() if one.name == name), None)
    if one is not None:
        about = query_field(one)
        if about.several and isinstance(value, list) and len(value) <= LONGEST_LIST:
            return tuple(str(each) for each in value)
        if not about.several and (name != "like" or (isinstance(value, dict) and _is_moment(value))):
            read: Callable[[Any], Any] = READERS.get(about.kind, _text)
            with suppress(TypeError, ValueError):
                return read(value)
    raise QueryError(f"a query has no {name!r} such as {value!r:.60}", field=name)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _number(value: Any) -> float:
    if not _is_number(value):
        raise TypeError
    return float(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _moment(value: dict[str, Any]) -> VideoMoment:
    return VideoMoment(**value)


def _day(value: Any) -> datetime:
    return datetime.fromisoformat(value)


READERS: dict[str, Callable[[Any], Any]] = {
    "number": _number,
    "flag": _flag,
    "day": _day,
    "file": _moment,
}
"""How a value of each kind is read; any other is text."""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_moment(value: dict[str, Any]) -> bool:
    texts = [value.get("path"), value.get("content")]
    known = value.keys() <= {"path", "second", "content"}
    second = value.get("second")
    return (
        known and all(isinstance(one, str | None) for one in texts) and (second is None or _is_number(second))
    )
