"""Where tracks and embeddings are: `wordreel tracks`, `reindex`, `index`, `push` and `pull`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Annotated

import typer

from wordreel.cli.console.common import (
    JsonOption,
    LibraryOption,
    OnOption,
    OpenLibrary,
    count_of,
    counter,
    print_result,
    printable,
    size_of,
)

if TYPE_CHECKING:
    from wordreel.search.server_index import IndexStatus

Address = Annotated[
    str, typer.Argument(help="postgresql://USER@HOST/DATABASE, with ?library=NAME for one of several.")
]


def tracks(
    library: OpenLibrary,
    address: Annotated[
        str | None,
        typer.Argument(help="Move them: s3://BUCKET/FOLDER, or `folder` for the library's own folder."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show where the library's tracks are, or move them to an object store and back.

    Tracks are what the experts found. In an object store the workers of a cluster can write them and several
    machines can read them. Stop at any time; the same command resumes. Restart servers of the library after
    a move.

    Example: wordreel tracks s3://archive/tracks
    """
    if address is not None:
        library.move_tracks(address, counter("tracks moved"))
    store = library.store.track_files
    number, size = sum(1 for _ in store.all()), store.bytes()
    line = f"{count_of(number, 'track')} ({size_of(size)}) in {printable(store.address)}"
    print_result(as_json, {"address": store.address, "tracks": number, "bytes": size}, [line])


def reindex(library: OpenLibrary, on: OnOption = None) -> None:
    """Embed all clips again from the stored tracks. No video is decoded.

    Example: wordreel reindex
    Example: wordreel reindex --on ray
    """
    with redirect_stdout(sys.stderr):  # Ray prints
        clips = library.reindex(counter("clips"), on=on)
    typer.echo(f"{clips} clips embedded.")


def index(
    library: OpenLibrary,
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
    from wordreel.search.server_index import LOCAL

    if drop and address != LOCAL:
        raise typer.BadParameter("--drop goes with local: wordreel index local --drop")
    if address == LOCAL:
        library.leave_index(drop=drop)
        status = None
    elif address is not None or check:
        server = library.index_server()
        chosen = address or (str(server) if server else LOCAL)
        if chosen == LOCAL:
            raise typer.BadParameter("give the address of the server to check.")
        status = library.use_index(chosen, deep=check, on_progress=counter("clips sent"))
    else:
        status = library.index_status()
    print_result(as_json, status, _status_lines(status))


def _status_lines(status: IndexStatus | None) -> Iterator[str]:
    """Yield lines about the server, how it searches, and what was sent."""
    if status is None:
        yield "Searched on this machine."
        return
    yield f"{printable(status.address)}: {status.engine}"
    recall = "recall not measured (build a query bank)" if status.recall is None else str(status.recall)
    how = "exact" if status.exact else f"approximate, {recall}"
    state = "complete" if status.complete else "incomplete: `wordreel index ADDRESS` sends the rest"
    yield f"{status.clips} clips, {how}, {state}"
    if status.sent is not None:
        sent = status.sent
        yield f"{sent.added} sent, {sent.repaired} repaired, {sent.deleted} deleted"


def push(library: OpenLibrary, address: Address) -> None:
    """Publish the library in PostgreSQL, for servers on other machines; repeat it after changes.

    The password comes from $WORDREEL_INDEX_PASSWORD and is not stored.

    Example: wordreel push postgresql://me@db.example.org/films
    """
    report = library.publish(address, counter("tracks published"))
    typer.echo(f"Generation {report.generation}: {report.rows} rows and {report.tracks} tracks sent.")


def pull(library: LibraryOption, address: Address) -> None:
    """Make a replica of a published library in an empty folder, or bring a replica up to date.

    Example: wordreel pull postgresql://me@db.example.org/films -L replica
    """
    from wordreel.library import Library

    with Library(library) as opened:
        report = opened.follow(address, counter("tracks and clips"))
    typer.echo(f"Generation {report.generation}: {report.rows} rows and {report.tracks} tracks fetched.")
