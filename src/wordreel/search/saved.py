"""Saved searches: a query with its filters under a name, a smart album. `Library.saved`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wordreel.catalogue.saved_searches import check_name, delete_saved, read_saved, write_saved
from wordreel.catalogue.store import LibraryStore
from wordreel.errors import LibraryError, QueryError
from wordreel.search.query import Query
from wordreel.search.query_json import query_from_json, query_to_json


@dataclass(frozen=True)
class SavedSearch:
    """A query under a name."""

    name: str
    query: Query
    made_at: float


class SavedSearches:
    """The saved searches of a library. What they find changes with the library."""

    def __init__(self, store: LibraryStore) -> None:
        self._store = store

    def save(self, name: str, query: Query, replace: bool = False) -> SavedSearch:
        """Save a query under a name.

        Raises:
            QueryError: The name cannot be used, or the query asks with a picture file.
            LibraryError: The name is taken, and `replace` is false.
        """
        clean = check_name(name)
        write_saved(self._store, clean, json.dumps(query_to_json(query), ensure_ascii=False), replace)
        return self.get(clean)

    def list(self) -> list[SavedSearch]:
        """Every saved search, by name."""
        return [SavedSearch(name, _read(name, text), made) for name, text, made in read_saved(self._store)]

    def get(self, name: str) -> SavedSearch:
        """One saved search.

        Raises:
            LibraryError: There is none of that name.
        """
        for saved in self.list():
            if saved.name == name:
                return saved
        others = ", ".join(saved.name for saved in self.list())
        raise LibraryError(
            f"there is no saved search {name!r}" + (f"; there are: {others}" if others else "")
        )

    def remove(self, name: str) -> None:
        """Remove a saved search.

        Raises:
            LibraryError: There is none of that name.
        """
        delete_saved(self._store, name)

    def export(self) -> Sequence[dict[str, Any]]:
        """All saved searches as JSON values."""
        return [{"name": one.name, "query": query_to_json(one.query)} for one in self.list()]

    def import_(self, rows: Sequence[Mapping[str, Any]], replace: bool = False) -> int:
        """Save exported searches, all or none of them; returns how many.

        Raises:
            QueryError: One of them is none.
            LibraryError: A name is taken, and `replace` is false.
        """
        checked = []
        for number, row in enumerate(rows, start=1):
            if not isinstance(row, Mapping) or not isinstance(row.get("query"), Mapping):
                raise QueryError(f"entry {number} is no saved search")
            checked.append((check_name(str(row.get("name", ""))), query_from_json(row["query"])))
        with self._store.catalogue.transaction():
            for name, query in checked:
                self.save(name, query, replace)
        return len(checked)


def _read(name: str, text: str) -> Query:
    try:
        values = json.loads(text)
    except ValueError as error:
        raise LibraryError(f"the saved search {name!r} is damaged ({error})") from None
    if not isinstance(values, dict):
        raise LibraryError(f"the saved search {name!r} is damaged")
    return query_from_json(values)
