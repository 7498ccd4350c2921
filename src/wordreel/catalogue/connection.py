"""The SQLite connection of a library: one per store, shared by its threads behind one lock.

A catalogue is brought to the version that this program writes by numbered SQL files, each applied once.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from wordreel.catalogue.paths import file_date, from_blob
from wordreel.errors import DiskError, LibraryError, NextStep
from wordreel.util.atomic import sync_file


@dataclass(frozen=True)
class Migration:
    """A numbered step from one schema to the next."""

    number: int
    name: str
    sql: str


def migrations() -> list[Migration]:
    """Return every migration, in order; numbers start at 1 and leave no gap.

    >>> [m.number for m in migrations()] == list(range(1, len(migrations()) + 1))
    True
    """
    steps = []
    for entry in resources.files("wordreel.catalogue").joinpath("migrations").iterdir():
        if entry.name.endswith(".sql"):
            number, _, name = entry.name.removesuffix(".sql").partition("_")
            steps.append(Migration(int(number), name, entry.read_text(encoding="utf-8")))
    return sorted(steps, key=lambda m: m.number)


def version(connection: sqlite3.Connection) -> int:
    """Return the version a catalogue is at; 0 for an empty one."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def migrate(connection: sqlite3.Connection, steps: list[Migration] | None = None) -> None:
    """Apply what is missing, one transaction per migration. A newer catalogue is refused, not touched."""
    steps = migrations() if steps is None else steps
    connection.create_function("file_date", 3, _file_date)
    for step in steps:
        at = version(connection)
        _refuse_newer(at, steps[-1].number)
        if step.number > at:
            _apply(connection, step)


def _file_date(path: bytes, mtime_ns: int, part: str) -> str:
    """Return the date or the source of a file that was added before dates were stored."""
    date, source = file_date(from_blob(path), mtime_ns, None)
    return date if part == "date" else source


def check_version(connection: sqlite3.Connection) -> None:
    """Refuse a catalogue that this program could not read without migrating it."""
    at, newest = version(connection), migrations()[-1].number
    _refuse_newer(at, newest)
    if at < newest:
        raise LibraryError(
            f"this library was written by an older wordreel (version {at}, this one reads {newest}) and "
            "cannot be upgraded on a disk that cannot be written",
            NextStep("copy it to a disk that can be written"),
        )


def _refuse_newer(at: int, newest: int) -> None:
    if at > newest:
        raise LibraryError(
            f"this library was written by a newer wordreel (version {at}, this one knows {newest})",
            NextStep("upgrade wordreel to use it"),
        )


def _apply(connection: sqlite3.Connection, step: Migration) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        if version(connection) < step.number:  # another process may have got here first
            for statement in _statements(step.sql):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {step.number}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _statements(sql: str) -> Iterator[str]:
    """Split a script at the semicolons that end statements (a trigger holds others)."""
    pending = ""
    for line in sql.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""
    if pending.strip():
        yield pending


NAME = "catalogue.sqlite"
REPAIR = NextStep("repair the library", "verify --repair")

ERRORS = (sqlite3.Error, UnicodeEncodeError, OverflowError)  # the last two of values that no column can hold

Row = tuple[Any, ...]

VALUES_AT_ONCE = 900  # in one statement; SQLite allows 999 at least


class Catalogue:
    """Runs SQL. Outside of `transaction()` each statement commits by itself.

    Write-ahead logging lets readers work while one process writes. `synchronous = FULL` makes a commit
    survive a power cut: track files are deleted only after the commit that removes their rows, so a
    commit that came undone would leave rows that point at nothing.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.read_only = path.is_file() and not os.access(path.parent, os.W_OK)
        self._lock = threading.RLock()
        self._depth = 0
        try:
            self._connection = self._connect_read_only() if self.read_only else self._connect()
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the second of a damaged name in a message
            raise explain(error, path) from error

    def _connect(self) -> sqlite3.Connection:
        connection = _open(str(self.path))
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        migrate(connection)
        return connection

    def _connect_read_only(self) -> sqlite3.Connection:
        """Read a catalogue on a disk that cannot be written, or that belongs to somebody else.

        Where its log still holds something, it is read as well if SQLite can share it.
        """
        log = self.path.with_name(f"{NAME}-wal")
        shared = log.exists() and log.stat().st_size > 0
        address = self.path.resolve().as_uri() + ("?mode=ro" if shared else "?mode=ro&immutable=1")
        connection = _open(address, uri=True)
        check_version(connection)
        return connection

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._connection.close()

    def rows(self, sql: str, *values: Any) -> list[Row]:
        """Return the rows of a statement."""
        with self._lock:
            try:
                return self._connection.execute(sql, values).fetchall()
            except ERRORS as error:
                raise explain(error, self.path) from error

    def rows_in(self, sql: str, chosen: Sequence[Any]) -> list[Row]:
        """Return the rows of a query whose `IN ?` stands for any number of values, 900 at a time."""
        rows: list[Row] = []
        for start in range(0, len(chosen), VALUES_AT_ONCE):
            some = chosen[start : start + VALUES_AT_ONCE]
            rows += self.rows(sql.replace("IN ?", f"IN ({','.join('?' * len(some))})"), *some)
        return rows

    def one(self, sql: str, *values: Any) -> Row | None:
        """Return the first row of a statement; None where there is none."""
        rows = self.rows(sql, *values)
        return rows[0] if rows else None

    def run(self, sql: str, *values: Any) -> int:
        """Execute one statement; the number of rows it changed."""
        with self._lock:
            try:
                return self._connection.execute(sql, values).rowcount
            except ERRORS as error:
                raise explain(error, self.path) from error

    def run_many(self, sql: str, values: Iterable[Row]) -> None:
        """Run a statement for each of these values."""
        with self._lock:
            try:
                self._connection.executemany(sql, values)
            except ERRORS as error:
                raise explain(error, self.path) from error

    def changes(self) -> int:
        """Return how many rows this connection has changed."""
        return self._connection.total_changes

    @contextmanager
    def transaction(self, reading: bool = False) -> Iterator[None]:
        """Commit everything inside, or nothing. A nested transaction is part of the outer one.

        With `reading`, all statements inside see one snapshot, and no writer has to wait.
        """
        with self._lock:
            if self._depth:
                yield
                return
            self.run("BEGIN" if reading else "BEGIN IMMEDIATE")
            self._depth = 1
            try:
                yield
                self.run("COMMIT")
            except BaseException:
                if self._connection.in_transaction:  # a full disk may have rolled it back already
                    self._connection.execute("ROLLBACK")
                raise
            finally:
                self._depth = 0

    def copy_to(self, path: Path) -> None:
        """Write the catalogue as of one moment to a file, flushed, while others go on writing."""
        try:
            target = sqlite3.connect(path, isolation_level=None)
            try:
                with self._lock:
                    self._connection.backup(target)
                target.execute("PRAGMA journal_mode = DELETE")  # one file, without a log beside it
            finally:
                target.close()
        except sqlite3.Error as error:
            raise explain(error, path) from error
        sync_file(path)


def _open(address: str, uri: bool = False) -> sqlite3.Connection:
    return sqlite3.connect(
        address, isolation_level=None, check_same_thread=False, timeout=30.0, cached_statements=256, uri=uri
    )


def explain(error: sqlite3.Error | ValueError | OverflowError, path: Path) -> LibraryError:
    """Turn an SQLite error into one that says what the user can do."""
    text = "malformed" if isinstance(error, UnicodeDecodeError) else str(error)
    if not isinstance(error, sqlite3.Error | UnicodeDecodeError):
        return LibraryError(f"the catalogue cannot hold or look for such a value: {text}")
    if "disk is full" in text or "disk I/O" in text:
        return disk_error(path, text)
    if "not a database" in text or "malformed" in text:
        return LibraryError(
            f"{path} is damaged or is not a wordreel catalogue ({text})",
            NextStep("restore it from a backup, or delete the library folder and add again", "add FOLDER"),
        )
    if "locked" in text:
        return LibraryError(
            f"{path} is in use by another program ({text})", NextStep("try again when it is done")
        )
    if "readonly" in text or "unable to open" in text:
        return LibraryError(
            f"{path} cannot be written ({text})",
            NextStep("check its permissions, or copy the library to a disk that can be written"),
        )
    return LibraryError(f"{path}: {text}", NextStep("check the library", "verify"))


def disk_error(path: Path, error: OSError | str) -> DiskError:
    """Return the error of a write that failed: for want of space, usually."""
    why = (error.strerror or str(error)) if isinstance(error, OSError) else error
    return DiskError(
        f"cannot write to {path}: {why}; everything added so far is saved",
        NextStep("free some space, or check the disk, and run the same command again"),
    )
