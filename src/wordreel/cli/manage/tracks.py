"""`wordreel tracks`: where a library's tracks are."""

from __future__ import annotations

from typing import Annotated

import typer

from wordreel.cli.console.common import (
    JsonOption,
    LibraryOption,
    count_of,
    counter,
    print_json,
    printable,
    size_of,
)


def tracks(
    library: LibraryOption,
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
    from wordreel.library import Library

    with Library(library, create=False) as opened:
        if address is not None:
            opened.move_tracks(address, counter("tracks moved"))
        store = opened.store.track_files
        number, size = sum(1 for _ in store.all()), store.bytes()
    if as_json:
        print_json({"address": store.address, "tracks": number, "bytes": size})
    else:
        typer.echo(f"{count_of(number, 'track')} ({size_of(size)}) in {printable(store.address)}")
