"""Publish a library in PostgreSQL: the owner's side of `publication`."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from wordreel.catalogue.store import REPLICA, LibraryStore
from wordreel.errors import LibraryError, NextStep
from wordreel.maintain.backup import identity
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

LIBRARIES = """CREATE TABLE IF NOT EXISTS wordreel_libraries (
    library text PRIMARY KEY, name text NOT NULL UNIQUE, generation bigint NOT NULL, digests text NOT NULL)"""
TRACKS = """CREATE TABLE IF NOT EXISTS wordreel_track_files (
    library text NOT NULL, hash text NOT NULL, data bytea NOT NULL, PRIMARY KEY (library, hash))"""


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
    with session(address) as connection:
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
                columns = columns_of(store, table)
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


def _create(connection: Any, store: LibraryStore) -> None:
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(hashtextextended('wordreel tables', 0))")
        connection.execute(LIBRARIES)
        connection.execute(TRACKS)
        for table in TABLES:
            columns = ", ".join(f'"{column}" {kind}' for column, kind in columns_of(store, table))
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
    missing = sorted(needed - track_names(connection, library))
    done = 0
    for some in batches(missing):
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


def _rows(
    store: LibraryStore, table: PublishedTable, columns: Sequence[tuple[str, str]]
) -> list[tuple[Any, ...]]:
    listed = ", ".join(f'"{column}"' for column, _ in columns)
    key = ", ".join(f'"{column}"' for column in table.key)
    rows = store.catalogue.rows(f"SELECT {listed} FROM {table.name} ORDER BY {key}")  # noqa: S608
    return [tuple(_clean(value) for value in row) for row in travelling(table.name, rows)]


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
