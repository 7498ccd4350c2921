"""Bring a catalogue to the version this program writes: numbered SQL files, each applied once."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources

from wordreel.errors import LibraryError, NextStep


@dataclass(frozen=True)
class Migration:
    """A numbered step from one schema to the next."""

    number: int
    name: str
    sql: str


def migrations() -> list[Migration]:
    """Every migration, in order; numbers start at 1 and leave no gap.

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
    for step in steps:
        at = version(connection)
        _refuse_newer(at, steps[-1].number)
        if step.number > at:
            _apply(connection, step)


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
