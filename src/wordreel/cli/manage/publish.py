"""`wordreel push` and `wordreel pull`."""

from __future__ import annotations

from typing import Annotated

import typer

from wordreel.cli.console.common import LibraryOption, counter

Address = Annotated[
    str, typer.Argument(help="postgresql://USER@HOST/DATABASE, with ?library=NAME for one of several.")
]


def push(library: LibraryOption, address: Address) -> None:
    """Publish the library in PostgreSQL, for servers on other machines; repeat it after changes.

    The password comes from $WORDREEL_INDEX_PASSWORD and is not stored.

    Example: wordreel push postgresql://me@db.example.org/films
    """
    from wordreel.library import Library

    with Library(library, create=False) as opened:
        report = opened.publish(address, counter("tracks published"))
    typer.echo(f"Generation {report.generation}: {report.rows} rows and {report.tracks} tracks sent.")


def pull(library: LibraryOption, address: Address) -> None:
    """Make a replica of a published library in an empty folder, or bring a replica up to date.

    Example: wordreel pull postgresql://me@db.example.org/films -L replica
    """
    from wordreel.library import Library

    with Library(library) as opened:
        report = opened.follow(address, counter("tracks and clips"))
    typer.echo(f"Generation {report.generation}: {report.rows} rows and {report.tracks} tracks fetched.")
