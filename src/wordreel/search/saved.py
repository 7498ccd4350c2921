"""`Library.saved`: queries with their filters under names, as smart albums; stored as JSON values."""

from __future__ import annotations

import builtins
import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import Field, dataclass
from datetime import datetime
from os import fspath
from typing import Any

from wordreel.catalogue.store import LibraryStore
from wordreel.errors import LibraryError, QueryError
from wordreel.search.query import Query, VideoMoment, question_fields
from wordreel.search.query_fields import query_field

LONGEST_NAME = 100
MOST_SAVED = 1_000
LONGEST_LIST = 20


@dataclass(frozen=True)
class SavedSearch:
    """A query under a name."""

    name: str
    query: Query
    made_at: float


class SavedSearches:
    """The saved searches of a library. What they find changes with the library."""

    def __init__(self, store: LibraryStore) -> None:
        self._store, self._catalogue = store, store.catalogue

    def save(self, name: str, query: Query, replace: bool = False) -> SavedSearch:
        """Save a query under a name.

        Raises:
            QueryError: The name cannot be used, or the query asks with a picture file.
            LibraryError: The name is taken, and `replace` is false.
        """
        clean = _check_name(name)
        values = json.dumps(query_to_json(query), ensure_ascii=False)
        with self._store.editing():
            names = {saved for saved, _, _ in self._rows()}
            if clean in names and not replace:
                raise LibraryError(f"there is a saved search {clean!r} already; choose another name")
            if clean not in names and len(names) >= MOST_SAVED:
                raise LibraryError(f"a library has at most {MOST_SAVED} saved searches")
            self._catalogue.run(
                "INSERT OR REPLACE INTO saved_searches VALUES (?, ?, ?)", clean, values, time.time()
            )
            return self.get(clean)

    def list(self) -> builtins.list[SavedSearch]:
        """Return every saved search, by name."""
        return [SavedSearch(name, _read(name, text), made_at) for name, text, made_at in self._rows()]

    def get(self, name: str) -> SavedSearch:
        """Return one saved search.

        Raises:
            LibraryError: There is none of that name.
        """
        searches = {saved.name: saved for saved in self.list()}
        if name in searches:
            return searches[name]
        others = f"; there are: {', '.join(searches)}" if searches else ""
        raise LibraryError(f"there is no saved search {name!r}{others}")

    def remove(self, name: str) -> None:
        """Remove a saved search.

        Raises:
            LibraryError: There is none of that name.
        """
        with self._store.editing():
            if not self._catalogue.run("DELETE FROM saved_searches WHERE name = ?", name):
                raise LibraryError(f"there is no saved search {name!r}")

    def export(self) -> Sequence[dict[str, Any]]:
        """Return all saved searches as JSON values."""
        return [{"name": saved.name, "query": query_to_json(saved.query)} for saved in self.list()]

    def import_(self, rows: Sequence[Mapping[str, Any]], replace: bool = False) -> int:
        """Save exported searches, all or none of them; return how many.

        Raises:
            QueryError: One of them is none.
            LibraryError: A name is taken, and `replace` is false.
        """
        with self._store.editing():
            for number, row in enumerate(rows, start=1):
                if not isinstance(row, Mapping) or not isinstance(row.get("query"), Mapping):
                    raise QueryError(f"entry {number} is no saved search")
                self.save(str(row.get("name", "")), query_from_json(row["query"]), replace)
        return len(rows)

    def _rows(self) -> Sequence[tuple[str, str, float]]:
        rows = self._catalogue.rows("SELECT name, query, made_at FROM saved_searches ORDER BY name")
        return [(str(name), str(query), float(made_at)) for name, query, made_at in rows]


def _check_name(name: str) -> str:
    clean = " ".join(name.split())
    if not clean or len(clean) > LONGEST_NAME or not clean.isprintable() or "/" in clean:
        raise QueryError(
            f"a name has 1 to {LONGEST_NAME} characters, no slash and nothing invisible", field="name"
        )
    return clean


def _read(name: str, text: str) -> Query:
    try:
        values = json.loads(text)
    except ValueError as error:
        raise LibraryError(f"the saved search {name!r} is damaged ({error})") from None
    if not isinstance(values, dict):
        raise LibraryError(f"the saved search {name!r} is damaged")
    return query_from_json(values)


def query_to_json(query: Query) -> dict[str, Any]:
    """Return what differs from the defaults, flat, without how many hits the query asks for.

    Raises:
        QueryError: It asks with a picture, or compares: neither can be saved.
    """
    if query.image is not None or query.compare:
        raise QueryError("a search by a picture file or a comparison cannot be saved", field="image")
    values: dict[str, Any] = {}
    for name, field in saved_fields().items():
        value = getattr(query.filters if hasattr(query.filters, name) else query, name)
        if value in (field.default, ()):
            continue
        if isinstance(value, VideoMoment):
            path = None if value.path is None else fspath(value.path)
            value = {"path": path, "second": value.second, "content": value.content}
        elif isinstance(value, datetime):
            value = value.isoformat()
        elif isinstance(value, tuple):
            value = list(value)
        values[name] = fspath(value) if name == "folder" else value
    return values


def query_from_json(values: Mapping[str, Any]) -> Query:
    """Return the query of JSON values.

    Raises:
        QueryError: There is an unknown field, or a value of the wrong kind.
    """
    return Query.build(**{name: _value(name, value) for name, value in values.items()})


def saved_fields() -> dict[str, Field[Any]]:
    """Return the fields that a saved search stores, by name; `second` is a part of `like`."""
    fields = {field.name: field for field in question_fields() if query_field(field).saved}
    del fields["second"]
    return fields


def _value(name: str, value: Any) -> Any:
    field = saved_fields().get(name)
    if field is not None:
        about = query_field(field)
        if about.several and isinstance(value, list) and len(value) <= LONGEST_LIST:
            return tuple(map(str, value))
        if not about.several:
            with suppress(TypeError, ValueError, QueryError):
                read: Callable[[Any], Any] = READERS.get(about.kind, _text)
                return read(value)
    raise QueryError(f"a query has no {name!r} such as {value!r:.60}", field=name)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _number(value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError
    return float(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _moment(value: Any) -> VideoMoment:
    texts = [value.get("path"), value.get("content")] if isinstance(value, dict) else [0]
    if not all(isinstance(text, str | None) for text in texts):
        raise TypeError
    if value.get("second") is not None:
        _number(value["second"])
    return VideoMoment(**value)


READERS: dict[str, Callable[[Any], Any]] = {
    "number": _number,
    "flag": _flag,
    "day": datetime.fromisoformat,
    "file": _moment,
}
"""How a value of each kind is read; any other is text."""
