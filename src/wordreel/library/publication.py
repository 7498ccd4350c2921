"""A library published in PostgreSQL, and replicas of it on other machines.

The owner's library stays what it is: a folder with its catalogue. `publish` copies the tables that searches
read, and the tracks, to PostgreSQL; `follow` brings a folder on another machine, the replica, to what is
published. Each publication is one transaction with a number, its generation. A published row carries the
generation that changed it and stays as `gone` when it is deleted, so a replica asks for what is newer than
it has. Tracks are named after their bytes: they travel first, once, and are checked on arrival.

A replica has the ids of the original, so all replicas and the original can share one vector server. Settings
and tables that belong to a machine (jobs, uploads, failures, the token, the address of a vector server) are
not published, and not taken from a server that offers them: whoever controls the database must not choose a
replica's token, where it keeps its tracks, or to whom it sends a password.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from wordreel.errors import LibraryError, NextStep
from wordreel.library.backup import IDENTITY, identity
from wordreel.library.store import MODEL_SETTING, SOURCE_SETTING, LibraryStore
from wordreel.postgresql_client import connect, explain
from wordreel.progress import Progress, ProgressCallback
from wordreel.server_address import ServerAddress

REPLICA = "replica of"  # setting of a replica: {"library", "generation"} as JSON
SETTINGS = frozenset({IDENTITY, MODEL_SETTING, SOURCE_SETTING})  # that travel
AT_ONCE = 64  # tracks in one transaction
TYPES = {"TEXT": "text", "INTEGER": "bigint", "REAL": "double precision", "BLOB": "bytea"}
LIBRARIES = """CREATE TABLE IF NOT EXISTS wordreel_libraries (
    library text PRIMARY KEY, name text NOT NULL UNIQUE, generation bigint NOT NULL, digests text NOT NULL)"""
TRACKS = """CREATE TABLE IF NOT EXISTS wordreel_track_files (
    library text NOT NULL, hash text NOT NULL, data bytea NOT NULL, PRIMARY KEY (library, hash))"""


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


def publish(
    store: LibraryStore, address: ServerAddress, on_progress: ProgressCallback | None = None
) -> PublicationReport:
    """Publish a library under the name in the address, or update its publication.

    Killed, the same call finishes.

    Raises:
        LibraryError: Another library is published under the name, or this one is itself a replica.
        IndexServerError: The server cannot be reached, or refuses.
    """
    if store.setting(REPLICA) is not None:
        step = NextStep("publish the library that it follows")
        raise LibraryError(f"{store.path} is a replica", step)
    library = identity(store)
    with _session(address) as connection:
        _create(connection, store)
        _check_name(connection, library, address.library)
        tracks = _send_tracks(connection, store, library, on_progress)
        with connection.transaction(), store.catalogue.transaction(reading=True):
            connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (library,))
            row = connection.execute(
                "SELECT generation, digests FROM wordreel_libraries WHERE library = %s", (library,)
            ).fetchone()
            tracks += _send_tracks(connection, store, library, None)  # of videos added meanwhile
            generation, before = (row[0], json.loads(row[1])) if row else (0, {})
            changed = 0
            digests = {}
            for table in TABLES:
                columns = _columns(store, table)
                rows = _rows(store, table, columns)
                digests[table.name] = _digest(rows)
                if digests[table.name] != before.get(table.name):
                    changed += _send_rows(connection, table, columns, library, generation + 1, rows)
            if digests != before:
                generation += 1
                connection.execute(
                    """INSERT INTO wordreel_libraries VALUES (%s, %s, %s, %s) ON CONFLICT (library) DO UPDATE
                       SET name = excluded.name, generation = excluded.generation,
                           digests = excluded.digests""",
                    (library, address.library, generation, json.dumps(digests)),
                )
        _drop_tracks(connection, library)
    return PublicationReport(generation, changed, tracks)


def published_generation(address: ServerAddress) -> int:
    """The generation that is published now."""
    with _session(address) as connection:
        return _published(connection, address)[1]


def follow(
    store: LibraryStore, address: ServerAddress, on_progress: ProgressCallback | None = None
) -> PublicationReport:
    """Bring a replica to what is published. Tracks come first, then all rows in one transaction.

    Raises:
        LibraryError: Nothing is published under the name, or the folder holds something else.
        IndexServerError: The server cannot be reached, or refuses.
    """
    with store.writing(), _session(address) as connection, connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        library, generation = _published(connection, address)
        mine = _followed(store, library)
        if mine == generation:
            return PublicationReport(generation, 0, 0)
        tracks = _fetch_tracks(connection, store, library, on_progress)
        changed = 0
        with store.catalogue.transaction():
            store.catalogue.run("PRAGMA defer_foreign_keys = ON")
            for table in reversed(TABLES):
                changed += _apply_gone(connection, store, table, library, mine)
            for table in TABLES:
                changed += _apply_rows(connection, store, table, library, mine)
            store.set_setting(REPLICA, json.dumps({"library": library, "generation": generation}))
        needed = {row.hash for row in store.tracks() if row.hash is not None}
        store.track_files.remove_all([d for d in store.track_files.all() if d not in needed])
    return PublicationReport(generation, changed, tracks)


def is_replica(store: LibraryStore) -> bool:
    return store.setting(REPLICA) is not None


# The owner's side


def _create(connection: Any, store: LibraryStore) -> None:
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(hashtextextended('wordreel tables', 0))")
        connection.execute(LIBRARIES)
        connection.execute(TRACKS)
        for table in TABLES:
            columns = ", ".join(f'"{column}" {kind}' for column, kind in _columns(store, table))
            key = ", ".join(f'"{column}"' for column in table.key)
            connection.execute(
                f"""CREATE TABLE IF NOT EXISTS {table.remote} (library text NOT NULL, {columns},
                    changed bigint NOT NULL, gone boolean NOT NULL, PRIMARY KEY (library, {key}))"""
            )
            connection.execute(
                f"CREATE INDEX IF NOT EXISTS {table.remote}_changed ON {table.remote} (library, changed)"
            )


def _check_name(connection: Any, library: str, name: str) -> None:
    if not re.fullmatch(r"[\w.-]{1,64}", name):
        raise LibraryError(
            f"{name!r} cannot name a library", NextStep("use letters, digits, '.', '-' and '_'")
        )
    row = connection.execute("SELECT library FROM wordreel_libraries WHERE name = %s", (name,)).fetchone()
    if row and row[0] != library:
        raise LibraryError(f"another library is published as {name!r}", NextStep("choose another name"))


def _send_rows(
    connection: Any,
    table: PublishedTable,
    columns: Sequence[tuple[str, str]],
    library: str,
    generation: int,
    rows: Sequence[tuple[Any, ...]],
) -> int:
    """Upsert the rows that differ and mark those that are no more; returns how many there were of both."""
    names = [f'"{column}"' for column, _ in columns]
    listed, key = ", ".join(names), ", ".join(f'"{column}"' for column in table.key)
    connection.execute(
        f"CREATE TEMPORARY TABLE staged ON COMMIT DROP AS SELECT {listed} FROM {table.remote} LIMIT 0"  # noqa: S608
    )
    with connection.cursor().copy(f"COPY staged ({listed}) FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)
    sets = ", ".join(f"{column} = excluded.{column}" for column in names)
    old, new = (", ".join(f"{side}.{column}" for column in names) for side in ("t", "excluded"))
    changed = connection.execute(
        f"""INSERT INTO {table.remote} AS t (library, {listed}, changed, gone)
            SELECT %s, {listed}, %s, false FROM staged ON CONFLICT (library, {key}) DO UPDATE
            SET {sets}, changed = excluded.changed, gone = false
            WHERE t.gone OR ({old}) IS DISTINCT FROM ({new})""",  # noqa: S608
        (library, generation),
    ).rowcount
    same = " AND ".join(f's."{column}" = t."{column}"' for column in table.key)
    gone = connection.execute(
        f"""UPDATE {table.remote} t SET gone = true, changed = %s WHERE library = %s AND NOT gone
            AND NOT EXISTS (SELECT 1 FROM staged s WHERE {same})""",  # noqa: S608
        (generation, library),
    ).rowcount
    connection.execute("DROP TABLE staged")
    return int(changed + gone)


def _send_tracks(
    connection: Any, store: LibraryStore, library: str, on_progress: ProgressCallback | None
) -> int:
    needed = {row.hash for row in store.tracks() if row.hash is not None}
    missing = sorted(needed - _track_names(connection, library))
    done = 0
    for some in _batches(missing):
        with connection.transaction():
            for digest in some:
                with suppress(FileNotFoundError):  # removed meanwhile, or lost
                    connection.execute(
                        "INSERT INTO wordreel_track_files VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
                        (library, digest, store.track_files.read(digest)),
                    )
                done += 1
        if on_progress:
            on_progress(Progress("publishing tracks", done, len(missing)))
    return done


def _drop_tracks(connection: Any, library: str) -> None:
    """Delete the published tracks that no row needs any more."""
    connection.execute(
        """DELETE FROM wordreel_track_files f WHERE library = %s AND NOT EXISTS (
           SELECT 1 FROM wordreel_catalogue_tracks t
           WHERE t.library = f.library AND t.hash = f.hash AND NOT t.gone)""",
        (library,),
    )


def _columns(store: LibraryStore, table: PublishedTable) -> list[tuple[str, str]]:
    """The columns of a table and their types in PostgreSQL."""
    rows = store.catalogue.rows(f"PRAGMA table_info({table.name})")
    return [(str(row[1]), TYPES[str(row[2])]) for row in rows]


def _rows(
    store: LibraryStore, table: PublishedTable, columns: Sequence[tuple[str, str]]
) -> list[tuple[Any, ...]]:
    listed = ", ".join(f'"{column}"' for column, _ in columns)
    key = ", ".join(f'"{column}"' for column in table.key)
    rows = store.catalogue.rows(f"SELECT {listed} FROM {table.name} ORDER BY {key}")  # noqa: S608
    return [tuple(_clean(value) for value in row) for row in travelling(table.name, rows)]


def travelling(table: str, rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The rows of a table, the key first, without the settings that belong to a machine.

    >>> travelling("settings", [("model", "reel"), ("serve.token", "…")])
    [('model', 'reel')]
    """
    return [row for row in rows if table != "settings" or row[0] in SETTINGS]


def _clean(value: Any) -> Any:
    """A text without what PostgreSQL cannot store."""
    if isinstance(value, str):
        return value.replace("\x00", " ").encode("utf-8", "replace").decode()
    return value


def _digest(rows: Sequence[tuple[Any, ...]]) -> str:
    total = hashlib.sha256()
    for row in rows:
        total.update(repr(row).encode())
    return total.hexdigest()


# The replica's side


def _published(connection: Any, address: ServerAddress) -> tuple[str, int]:
    exists = connection.execute("SELECT to_regclass('wordreel_libraries')").fetchone()[0]
    row = None
    if exists is not None:
        row = connection.execute(
            "SELECT library, generation FROM wordreel_libraries WHERE name = %s", (address.library,)
        ).fetchone()
    if row is None:
        step = NextStep("publish it on the machine that has the library", f"push {address}")
        raise LibraryError(f"no library {address.library!r} is published at {address}", step)
    return str(row[0]), int(row[1])


def _followed(store: LibraryStore, library: str) -> int:
    """The generation that a replica has; 0 for an empty folder."""
    saved = store.setting(REPLICA)
    if saved is None:
        if store.files() or store.setting(IDENTITY) is not None:
            step = NextStep("choose an empty folder for the replica", "pull ADDRESS -L FOLDER")
            raise LibraryError(f"{store.path} is a library of its own", step)
        return 0
    known = json.loads(saved)
    if known["library"] != library:
        step = NextStep("choose another folder for this replica", "pull ADDRESS -L FOLDER")
        raise LibraryError(f"{store.path} is a replica of another library", step)
    return int(known["generation"])


def _fetch_tracks(
    connection: Any, store: LibraryStore, library: str, on_progress: ProgressCallback | None
) -> int:
    missing = sorted(_track_names(connection, library) - set(store.track_files.all()))
    done = 0
    for some in _batches(missing):
        query = "SELECT hash, data FROM wordreel_track_files WHERE library = %s AND hash = ANY(%s)"
        for digest, data in connection.execute(query, (library, some)).fetchall():
            if hashlib.sha256(data).hexdigest() != digest:
                raise LibraryError(f"the published track {digest} is damaged", NextStep("publish it again"))
            store.track_files.put(digest, bytes(data))
            done += 1
        if on_progress:
            on_progress(Progress("fetching tracks", done, len(missing)))
    return done


def _apply_gone(connection: Any, store: LibraryStore, table: PublishedTable, library: str, mine: int) -> int:
    key = ", ".join(f'"{column}"' for column in table.key)
    gone = connection.execute(
        f"SELECT {key} FROM {table.remote} WHERE library = %s AND changed > %s AND gone",  # noqa: S608
        (library, mine),
    ).fetchall()
    gone = travelling(table.name, gone)
    where = " AND ".join(f'"{column}" = ?' for column in table.key)
    store.catalogue.run_many(f"DELETE FROM {table.name} WHERE {where}", gone)  # noqa: S608
    return len(gone)


def _apply_rows(connection: Any, store: LibraryStore, table: PublishedTable, library: str, mine: int) -> int:
    names = [f'"{column}"' for column, _ in _columns(store, table)]
    listed, key = ", ".join(names), ", ".join(f'"{column}"' for column in table.key)
    sets = ", ".join(f"{column} = excluded.{column}" for column in names)
    rows = connection.execute(
        f"SELECT {listed} FROM {table.remote} WHERE library = %s AND changed > %s AND NOT gone "  # noqa: S608
        f"ORDER BY {key}",
        (library, mine),
    ).fetchall()
    rows = travelling(table.name, rows)
    if table.name == "tracks":
        check_names(row[names.index('"hash"')] for row in rows)
    store.catalogue.run_many(
        f"INSERT INTO {table.name} ({listed}) VALUES ({', '.join('?' * len(names))}) "  # noqa: S608
        f"ON CONFLICT ({key}) DO UPDATE SET {sets}",
        rows,
    )
    return len(rows)


def check_names(hashes: Iterable[str | None]) -> None:
    """Refuse names of tracks that are no hashes: they become parts of paths."""
    for name in hashes:
        if name is not None and not re.fullmatch(r"[0-9a-f]{64}", name):
            raise LibraryError(f"{name!r} does not name a track", NextStep("publish the library again"))


# Both


class _session:
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


def _track_names(connection: Any, library: str) -> set[str]:
    query = "SELECT hash FROM wordreel_track_files WHERE library = %s"
    return {str(digest) for (digest,) in connection.execute(query, (library,)).fetchall()}


def _batches(names: Sequence[str]) -> Iterator[list[str]]:
    for start in range(0, len(names), AT_ONCE):
        yield list(names[start : start + AT_ONCE])
