"""`wordreel index`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from wordreel.cli.console.common import JsonOption, LibraryOption, counter, print_json, printable

if TYPE_CHECKING:
    from wordreel.search.server_index import IndexStatus


def index(
    library: LibraryOption,
    address: Annotated[
        str | None,
        typer.Argument(help="postgresql://USER@HOST/DATABASE, milvus://HOST, or local.", show_default=False),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Compare every vector on the server, and send damaged ones again.")
    ] = False,
    drop: Annotated[
        bool, typer.Option("--drop", help="With local: delete what the server holds of this library.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Search by a PostgreSQL (pgvector) or Milvus server, or show which one searches.

    Sends what the server does not have; repeat it after adding videos, or let `wordreel serve` do it. The
    password comes from $WORDREEL_INDEX_PASSWORD and is not stored. `?mode=hnsw` searches approximately.

    Examples:

      wordreel index postgresql://me@db.example.org/films

      wordreel index local
    """
    from wordreel.library import Library
    from wordreel.search.server_index import LOCAL

    if drop and address != LOCAL:
        raise typer.BadParameter("--drop goes with local: wordreel index local --drop")
    with Library(library, create=False) as opened:
        if address == LOCAL:
            opened.leave_index(drop=drop)
            status = None
        elif address is not None or check:
            server = opened.index_server()
            chosen = address or (str(server) if server else LOCAL)
            if chosen == LOCAL:
                raise typer.BadParameter("give the address of the server to check.")
            status = opened.use_index(chosen, deep=check, on_progress=counter("clips sent"))
        else:
            status = opened.index_status()
    if as_json:
        print_json(None if status is None else asdict(status))
    elif status is None:
        typer.echo("Searched on this machine.")
    else:
        print_status(status)


def print_status(status: IndexStatus) -> None:
    """The server, how it searches, and what was sent."""
    typer.echo(f"{printable(status.address)}: {status.engine}")
    recall = "recall not measured (build a query bank)" if status.recall is None else str(status.recall)
    how = "exact" if status.exact else f"approximate, {recall}"
    state = "complete" if status.complete else "incomplete: `wordreel index ADDRESS` sends the rest"
    typer.echo(f"{status.clips} clips, {how}, {state}")
    if status.sent is not None:
        sent = status.sent
        typer.echo(f"{sent.added} sent, {sent.repaired} repaired, {sent.deleted} deleted")
