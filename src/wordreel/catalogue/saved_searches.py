"""The table of saved searches. Written outside the writer's lock, as tags are."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from wordreel.catalogue.annotations import refuse_read_only
from wordreel.errors import LibraryError, QueryError

if TYPE_CHECKING:
    from wordreel.catalogue.store import LibraryStore

LONGEST_NAME = 100
MOST = 1_000


def check_name(name: str) -> str:
    """A name without the spaces around it."""
    clean = " ".join(name.split())
    if not clean or len(clean) > LONGEST_NAME or not clean.isprintable() or "/" in clean:
        raise QueryError(
            f"a name has 1 to {LONGEST_NAME} characters, no slash and nothing invisible", field="name"
        )
    return clean


def read_saved(store: LibraryStore) -> list[tuple[str, str, float]]:
    """Name, query and time of every saved search, by name."""
    rows = store.catalogue.rows("SELECT name, query, made_at FROM saved_searches ORDER BY name")
    return [(str(name), str(query), float(made)) for name, query, made in rows]


def write_saved(store: LibraryStore, name: str, query: str, replace: bool) -> None:
    """Save a search; a taken name is refused unless it is to be replaced."""
    refuse_read_only(store)
    with store.catalogue.transaction():
        names = {known for known, _, _ in read_saved(store)}
        if name in names and not replace:
            raise LibraryError(f"there is a saved search {name!r} already; choose another name")
        if name not in names and len(names) >= MOST:
            raise LibraryError(f"a library has at most {MOST} saved searches")
        store.catalogue.run(
            "INSERT OR REPLACE INTO saved_searches VALUES (?, ?, ?)", name, query, time.time()
        )


def delete_saved(store: LibraryStore, name: str) -> None:
    refuse_read_only(store)
    if not store.catalogue.run("DELETE FROM saved_searches WHERE name = ?", name):
        raise LibraryError(f"there is no saved search {name!r}")
