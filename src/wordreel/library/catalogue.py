"""The SQLite connection of a library: one per store, shared by its threads behind one lock."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from wordreel.errors import LibraryError
from wordreel.library.migrations import migrate

NAME = "catalogue.sqlite"

Row = tuple[Any, ...]


class Catalogue:
    """Rows in, rows out. Writes happen inside `transaction()`; outside it each statement stands alone.

    Write-ahead logging lets readers work while one process writes. `synchronous = FULL` makes a commit
    survive a power cut: track files are deleted only after the commit that forgets them, so a commit that
    came undone would leave rows pointing at nothing.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._depth = 0
        try:
            self._connection = sqlite3.connect(
                path, isolation_level=None, check_same_thread=False, timeout=30.0, cached_statements=256
            )
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = FULL")
            self._connection.execute("PRAGMA foreign_keys = ON")
            migrate(self._connection)
        except sqlite3.Error as error:
            raise explain(error, path) from error

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def rows(self, sql: str, *values: Any) -> list[Row]:
        with self._lock:
            try:
                return self._connection.execute(sql, values).fetchall()
            except sqlite3.Error as error:
                raise explain(error, self.path) from error

    def one(self, sql: str, *values: Any) -> Row | None:
        found = self.rows(sql, *values)
        return found[0] if found else None

    def run(self, sql: str, *values: Any) -> int:
        """Execute one statement; the number of rows it changed."""
        with self._lock:
            try:
                return self._connection.execute(sql, values).rowcount
            except sqlite3.Error as error:
                raise explain(error, self.path) from error

    def run_many(self, sql: str, values: Iterable[Row]) -> None:
        with self._lock:
            try:
                self._connection.executemany(sql, values)
            except sqlite3.Error as error:
                raise explain(error, self.path) from error

    @contextmanager
    def transaction(self, reading: bool = False) -> Iterator[None]:
        """All of what happens inside, or none of it. Inside another one it is part of that one.

        With `reading`, everything seen inside is of one moment, and no writer is kept waiting.
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


def explain(error: sqlite3.Error, path: Path) -> LibraryError:
    """Turn what SQLite says into what the user can do."""
    text = str(error)
    if "disk is full" in text or "disk I/O" in text:
        return disk_full(path, text)
    if "not a database" in text or "malformed" in text:
        return LibraryError(
            f"{path} is damaged or is not a wordreel catalogue ({text}); "
            "restore it from a backup, or delete the library folder and run `wordreel add` again"
        )
    if "locked" in text:
        return LibraryError(f"{path} is in use by another program ({text}); try again when it is done")
    if "readonly" in text or "unable to open" in text:
        return LibraryError(f"{path} cannot be opened for writing ({text}); check its permissions")
    return LibraryError(f"{path}: {text}; run `wordreel verify`")


def disk_full(path: Path, text: str) -> LibraryError:
    return LibraryError(
        f"cannot write to {path}: {text}. What was added so far is kept; free some space and run the same "
        "command again"
    )
