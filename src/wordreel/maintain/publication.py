"""A library published in PostgreSQL, and replicas of it on other machines.

The owner's library stays what it is: a folder with its catalogue. `publish.py` copies the tables that
searches read, and the tracks, to PostgreSQL; `follow.py` brings a folder on another machine, the replica, to
what is published. Each publication is one transaction with a number, its generation. A published row carries
the generation that changed it and stays as `gone` when it is deleted, so a replica asks for what is newer
than it has. Tracks are named after their bytes: they travel first, once, and are checked on arrival.

A replica has the ids of the original, so all replicas and the original can share one vector server. Settings
and tables that belong to a machine (jobs, uploads, failures, people, the token, the address of a vector
server) are not published, and not taken from a server that offers them: whoever controls the database must
not choose a replica's token, where it keeps its tracks, or to whom it sends a password.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from wordreel.catalogue.store import MODEL_SETTING, REPLICA, SOURCE_SETTING, LibraryStore
from wordreel.maintain.backup import IDENTITY
from wordreel.util.postgresql_client import connect, explain
from wordreel.util.server_address import ServerAddress

SETTINGS = frozenset({IDENTITY, MODEL_SETTING, SOURCE_SETTING})  # that travel
AT_ONCE = 64  # tracks in one transaction
TYPES = {"TEXT": "text", "INTEGER": "bigint", "REAL": "double precision", "BLOB": "bytea"}


@dataclass(frozen=True)
class PublishedTable:
    """A table of the catalogue that is published, and the columns of its primary key."""

    name: str
    key: tuple[str, ...]

    @property
    def remote(self) -> str:
        return f"wordreel_catalogue_{self.name}"


TABLES = (  # in the order in which rows refer to one another
    PublishedTable("contents", ("content",)),
    PublishedTable("quick_contents", ("content",)),
    PublishedTable("files", ("path",)),
    PublishedTable("tracks", ("content", "expert")),
    PublishedTable("clips", ("id",)),
    PublishedTable("words", ("id",)),
    PublishedTable("captions", ("id",)),
    PublishedTable("annotations", ("id",)),
    PublishedTable("saved_searches", ("name",)),
    PublishedTable("banks", ("name",)),
    PublishedTable("bank_queries", ("id",)),
    PublishedTable("bank_checks", ("bank", "fingerprint")),
    PublishedTable("settings", ("name",)),
)


@dataclass(frozen=True)
class PublicationReport:
    """The generation that is published or followed, and how many rows and tracks travelled to get there."""

    generation: int
    rows: int
    tracks: int


def is_replica(store: LibraryStore) -> bool:
    return store.setting(REPLICA) is not None


def columns_of(store: LibraryStore, table: PublishedTable) -> list[tuple[str, str]]:
    """The columns of a table and their types in PostgreSQL."""
    rows = store.catalogue.rows(f"PRAGMA table_info({table.name})")
    return [(str(row[1]), TYPES[str(row[2])]) for row in rows]


def travelling(table: str, rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The rows of a table, the key first, without the settings that belong to a machine.

    >>> travelling("settings", [("model", "joint"), ("serve.token", "…")])
    [('model', 'joint')]
    """
    return [row for row in rows if table != "settings" or row[0] in SETTINGS]


class session:
    """A connection, whose errors say what to do."""

    def __init__(self, address: ServerAddress) -> None:
        self._address = address

    def __enter__(self) -> Any:
        self._connection = connect(self._address)
        return self._connection

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        import psycopg

        self._connection.close()
        if isinstance(error, psycopg.Error):
            raise explain(error, self._address) from error


def track_names(connection: Any, library: str) -> set[str]:
    query = "SELECT hash FROM wordreel_track_files WHERE library = %s"
    return {str(digest) for (digest,) in connection.execute(query, (library,)).fetchall()}


def batches(names: Sequence[str]) -> Iterator[list[str]]:
    for start in range(0, len(names), AT_ONCE):
        yield list(names[start : start + AT_ONCE])
