"""Bring a replica to what is published: the other side of `publication`."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from typing import Any

from wordreel.catalogue.store import REPLICA, LibraryStore
from wordreel.errors import LibraryError, NextStep
from wordreel.maintain.backup import IDENTITY
from wordreel.maintain.publication import (
    TABLES,
    PublicationReport,
    PublishedTable,
    batches,
    columns_of,
    session,
    track_names,
    travelling,
)
from wordreel.progress import Progress, ProgressCallback
from wordreel.util.server_address import ServerAddress


def published_generation(address: ServerAddress) -> int:
    """The generation that is published now."""
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
    missing = sorted(track_names(connection, library) - set(store.track_files.all()))
    done = 0
    for some in batches(missing):
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
    names = [f'"{column}"' for column, _ in columns_of(store, table)]
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
