"""A library published in PostgreSQL, and replicas of it on other machines. Experimental.

The owner's library stays what it is: a folder with its catalogue. `publish` sends the tables that searches
read, packed as JSON, and the tracks; `follow` brings a folder on another machine, the replica, to what is
published. Each publication is one transaction with a number, its generation. Tracks are named after their
bytes: they travel first, once, and are checked on arrival.

A replica has the ids of the original, so all replicas and the original can share one vector server. Settings
and tables that belong to a machine (jobs, uploads, failures, people, the token, the address of a vector
server) are not published, and not taken from a server that offers them: whoever controls the database must
not choose a replica's token, where it keeps its tracks, or to whom it sends a password.
"""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from wordreel.catalogue.store import MODEL_SETTING, REPLICA, SOURCE_SETTING, LibraryStore
from wordreel.errors import LibraryError, NextStep
from wordreel.maintain.backup import IDENTITY, identity
from wordreel.progress import Progress, ProgressCallback
from wordreel.util.postgresql_client import connect, explain
from wordreel.util.server_address import ServerAddress

SETTINGS = frozenset({IDENTITY, MODEL_SETTING, SOURCE_SETTING})  # that are published
TRACKS_AT_ONCE = 64  # in one transaction
PIECE = 2**24  # bytes of a catalogue in one row
TYPES: dict[str, Any] = {"TEXT": str, "INTEGER": int, "REAL": int | float, "BLOB": str}
"""What a value of a column is in JSON, by its declared type; a BLOB is Latin-1."""
KEYS = {  # in the order in which rows refer to one another
    "contents": ("content",),
    "quick_contents": ("content",),
    "files": ("path",),
    "tracks": ("content", "expert"),
    "clips": ("id",),
    "words": ("id",),
    "captions": ("id",),
    "annotations": ("id",),
    "saved_searches": ("name",),
    "banks": ("name",),
    "bank_queries": ("id",),
    "bank_checks": ("bank", "fingerprint"),
    "settings": ("name",),
}
"""The tables that are published, and their primary keys."""
CREATE = (
    "SELECT pg_advisory_xact_lock(hashtextextended('wordreel tables', 0))",
    """CREATE TABLE IF NOT EXISTS wordreel_publications (library text PRIMARY KEY, name text NOT NULL UNIQUE,
       generation bigint NOT NULL, digest text NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS wordreel_catalogues (library text NOT NULL, piece bigint NOT NULL,
       data bytea NOT NULL, PRIMARY KEY (library, piece))""",
    """CREATE TABLE IF NOT EXISTS wordreel_track_files (library text NOT NULL, hash text NOT NULL,
       data bytea NOT NULL, PRIMARY KEY (library, hash))""",
)

Rows = list[tuple[Any, ...]]


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
    if store.is_replica:
        raise LibraryError(f"{store.path} is a replica", NextStep("publish the library that it follows"))
    library = identity(store)
    with session(address) as connection:
        with connection.transaction():
            for statement in CREATE:
                connection.execute(statement)
        _check_name(connection, library, address.library)
        tracks = _send_tracks(connection, store, library, on_progress)
        with connection.transaction(), store.catalogue.transaction(reading=True):
            connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (library,))
            tracks += _send_tracks(connection, store, library, None)  # of videos added meanwhile
            tables = {name: read_rows(store, name) for name in KEYS}
            packed = pack(tables)
            digest, rows = hashlib.sha256(packed).hexdigest(), 0
            generation, before = _publication(connection, library) or (0, "")
            if digest != before:
                generation, rows = generation + 1, sum(map(len, tables.values()))
                _send_catalogue(connection, library, packed)
                connection.execute(
                    """INSERT INTO wordreel_publications VALUES (%s, %s, %s, %s) ON CONFLICT (library)
                       DO UPDATE SET name = excluded.name, generation = excluded.generation,
                       digest = excluded.digest""",
                    (library, address.library, generation, digest),
                )
        connection.execute(
            "DELETE FROM wordreel_track_files WHERE library = %s AND NOT hash = ANY(%s)",
            (library, sorted(store.track_names())),
        )
    return PublicationReport(generation, rows, tracks)


def published_generation(address: ServerAddress) -> int:
    """Return the generation that is published now."""
    with session(address) as connection:
        return _published(connection, address)[1]


def follow(
    store: LibraryStore, address: ServerAddress, on_progress: ProgressCallback | None = None
) -> PublicationReport:
    """Bring a replica to what is published. Tracks come first, then all rows in one transaction.

    Raises:
        LibraryError: Nothing is published under the name, or the folder holds something else.
        IndexServerError: The server cannot be reached, or refuses.
    """
    with store.writing(), session(address) as connection, connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        library, generation, digest = _published(connection, address)
        if _followed(store, library) == [generation, digest]:
            return PublicationReport(generation, 0, 0)
        query = "SELECT data FROM wordreel_catalogues WHERE library = %s ORDER BY piece"
        packed = b"".join(data for (data,) in connection.execute(query, (library,)).fetchall())
        if hashlib.sha256(packed).hexdigest() != digest:
            raise LibraryError("the published catalogue is damaged", NextStep("publish the library again"))
        tables = unpack(store, packed)
        hashes = [name for name, _ in _columns(store, "tracks")].index("hash")
        needed = {str(row[hashes]) for row in tables["tracks"] if row[hashes] is not None}
        check_names(needed)
        tracks = _fetch_tracks(connection, store, library, needed, on_progress)
        with store.catalogue.transaction():
            store.catalogue.run("PRAGMA defer_foreign_keys = ON")
            rows = sum(_delete_gone(store, name, tables[name]) for name in reversed(KEYS))
            rows += sum(_upsert(store, name, tables[name]) for name in KEYS)
            state = {"library": library, "generation": generation, "digest": digest}
            store.set_setting(REPLICA, json.dumps(state))
        store.track_files.remove_all([name for name in store.track_files.all() if name not in needed])
    return PublicationReport(generation, rows, tracks)


@contextmanager
def session(address: ServerAddress) -> Iterator[Any]:
    """Yield a connection, whose errors say what to do."""
    connection = connect(address)
    import psycopg

    try:
        yield connection
    except psycopg.Error as error:
        raise explain(error, address) from error
    finally:
        connection.close()


def read_rows(store: LibraryStore, table: str) -> Rows:
    """Return the rows of a table that are published, by key."""
    listed = ", ".join(f'"{name}"' for name, _ in _columns(store, table))
    key = ", ".join(KEYS[table])
    return publishable(table, store.catalogue.rows(f"SELECT {listed} FROM {table} ORDER BY {key}"))  # noqa: S608


def publishable(table: str, rows: Iterable[tuple[Any, ...]]) -> Rows:
    """Return the rows of a table without the settings that belong to a machine.

    >>> publishable("settings", [("model", "joint"), ("serve.token", "…")])
    [('model', 'joint')]
    """
    return [row for row in rows if table != "settings" or row[0] in SETTINGS]


def pack(tables: Mapping[str, Rows]) -> bytes:
    """Return tables as compressed JSON."""
    return zlib.compress(json.dumps(tables, default=lambda blob: blob.decode("latin-1")).encode(), 1)


def unpack(store: LibraryStore, packed: bytes) -> dict[str, Rows]:
    """Return the rows of packed tables; refuse what a table of the catalogue does not hold."""
    try:
        found: dict[str, Rows] = {}
        tables = json.loads(zlib.decompress(packed))
        for table in KEYS:
            types = [declared for _, declared in _columns(store, table)]
            rows = [
                tuple(_value(declared, value) for declared, value in zip(types, row, strict=True))
                for row in tables[table]
            ]
            found[table] = publishable(table, rows)
        return found
    except (ValueError, TypeError, KeyError, zlib.error) as error:
        step = NextStep("publish the library again, with the version of wordreel that the replica has")
        raise LibraryError(f"the published catalogue cannot be read ({error})", step) from error


def _value(declared: str, value: Any) -> Any:
    if value is not None and not isinstance(value, TYPES[declared]):
        raise TypeError(f"{value!r:.40} is no {declared}")
    return value.encode("latin-1") if declared == "BLOB" and value is not None else value


def check_names(hashes: Iterable[str]) -> None:
    """Refuse names of tracks that are no hashes: they become parts of paths."""
    for name in hashes:
        if not re.fullmatch(r"[0-9a-f]{64}", name):
            raise LibraryError(f"{name!r} does not name a track", NextStep("publish the library again"))


def _columns(store: LibraryStore, table: str) -> list[tuple[str, str]]:
    """Return the names and declared types of the columns of a table."""
    return [(str(row[1]), str(row[2])) for row in store.catalogue.rows(f"PRAGMA table_info({table})")]


def _check_name(connection: Any, library: str, name: str) -> None:
    if not re.fullmatch(r"[\w.-]{1,64}", name):
        step = NextStep("use letters, digits, '.', '-' and '_'")
        raise LibraryError(f"{name!r} cannot name a library", step)
    row = connection.execute("SELECT library FROM wordreel_publications WHERE name = %s", (name,)).fetchone()
    if row and row[0] != library:
        raise LibraryError(f"another library is published as {name!r}", NextStep("choose another name"))


def _publication(connection: Any, library: str) -> tuple[int, str] | None:
    query = "SELECT generation, digest FROM wordreel_publications WHERE library = %s"
    row: tuple[int, str] | None = connection.execute(query, (library,)).fetchone()
    return row


def _send_catalogue(connection: Any, library: str, packed: bytes) -> None:
    connection.execute("DELETE FROM wordreel_catalogues WHERE library = %s", (library,))
    for start in range(0, len(packed), PIECE):
        values = (library, start // PIECE, packed[start : start + PIECE])
        connection.execute("INSERT INTO wordreel_catalogues VALUES (%s, %s, %s)", values)


def _send_tracks(
    connection: Any, store: LibraryStore, library: str, on_progress: ProgressCallback | None
) -> int:
    query = "SELECT hash FROM wordreel_track_files WHERE library = %s"
    published = {str(name) for (name,) in connection.execute(query, (library,)).fetchall()}
    missing = sorted(store.track_names() - published)
    for start in range(0, len(missing), TRACKS_AT_ONCE):
        with connection.transaction():
            for name in missing[start : start + TRACKS_AT_ONCE]:
                with suppress(FileNotFoundError):  # removed meanwhile, or lost
                    connection.execute(
                        "INSERT INTO wordreel_track_files VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
                        (library, name, store.track_files.read(name)),
                    )
        if on_progress:
            done = min(start + TRACKS_AT_ONCE, len(missing))
            on_progress(Progress("publishing tracks", done, len(missing)))
    return len(missing)


def _published(connection: Any, address: ServerAddress) -> tuple[str, int, str]:
    exists = connection.execute("SELECT to_regclass('wordreel_publications')").fetchone()[0]
    query = "SELECT library, generation, digest FROM wordreel_publications WHERE name = %s"
    row = connection.execute(query, (address.library,)).fetchone() if exists else None
    if row is None:
        step = NextStep("publish it on the machine that has the library", f"push {address}")
        raise LibraryError(f"no library {address.library!r} is published at {address}", step)
    return str(row[0]), int(row[1]), str(row[2])


def _followed(store: LibraryStore, library: str) -> list[Any] | None:
    """Return the generation that a replica has, and its digest; None for an empty folder."""
    saved = store.setting(REPLICA)
    if saved is None:
        if store.files() or store.setting(IDENTITY) is not None:
            step = NextStep("choose an empty folder for the replica", "pull ADDRESS -L FOLDER")
            raise LibraryError(f"{store.path} is a library of its own", step)
        return None
    state = json.loads(saved)
    if state["library"] != library:
        step = NextStep("choose another folder for this replica", "pull ADDRESS -L FOLDER")
        raise LibraryError(f"{store.path} is a replica of another library", step)
    return [state["generation"], state.get("digest")]


def _fetch_tracks(
    connection: Any,
    store: LibraryStore,
    library: str,
    needed: set[str],
    on_progress: ProgressCallback | None,
) -> int:
    missing = sorted(needed - set(store.track_files.all()))
    query = "SELECT hash, data FROM wordreel_track_files WHERE library = %s AND hash = ANY(%s)"
    fetched = 0
    for start in range(0, len(missing), TRACKS_AT_ONCE):
        names = missing[start : start + TRACKS_AT_ONCE]
        for name, data in connection.execute(query, (library, names)).fetchall():
            if hashlib.sha256(data).hexdigest() != name:
                raise LibraryError(f"the published track {name} is damaged", NextStep("publish it again"))
            store.track_files.put(name, bytes(data))
            fetched += 1
        if on_progress:
            on_progress(Progress("fetching tracks", fetched, len(missing)))
    return fetched


def _by_key(store: LibraryStore, table: str, rows: Sequence[tuple[Any, ...]]) -> dict[tuple[Any, ...], Any]:
    names = [name for name, _ in _columns(store, table)]
    places = [names.index(column) for column in KEYS[table]]
    return {tuple(row[place] for place in places): row for row in rows}


def _delete_gone(store: LibraryStore, table: str, rows: Rows) -> int:
    gone = _by_key(store, table, read_rows(store, table)).keys() - _by_key(store, table, rows).keys()
    where = " AND ".join(f'"{column}" = ?' for column in KEYS[table])
    store.catalogue.run_many(f"DELETE FROM {table} WHERE {where}", gone)  # noqa: S608
    return len(gone)


def _upsert(store: LibraryStore, table: str, rows: Rows) -> int:
    before = _by_key(store, table, read_rows(store, table))
    changed = [row for key, row in _by_key(store, table, rows).items() if before.get(key) != row]
    names = [f'"{name}"' for name, _ in _columns(store, table)]
    sets = ", ".join(f"{name} = excluded.{name}" for name in names)
    store.catalogue.run_many(
        f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))}) "  # noqa: S608
        f"ON CONFLICT ({', '.join(KEYS[table])}) DO UPDATE SET {sets}",
        changed,
    )
    return len(changed)
