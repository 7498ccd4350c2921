"""`wordreel like`."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from wordreel.cli.common import JsonOption, LibraryOption, clock, print_json
from wordreel.cli.search import DATES, line, reasons


def like(
    video: Annotated[Path, typer.Argument(help="A file, in the library or not.")],
    library: LibraryOption,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many videos to show.")] = 10,
    moment: Annotated[
        float | None, typer.Option(min=0.0, help="Only what is at this second of the file.")
    ] = None,
    folder: Annotated[Path | None, typer.Option("--in", help="Only files under this folder.")] = None,
    after: Annotated[
        datetime | None, typer.Option(formats=DATES, help="Only files last changed at or after this day.")
    ] = None,
    before: Annotated[
        datetime | None, typer.Option(formats=DATES, help="Only files last changed before this day.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Find videos that are like a video.

    A file that is not in the library is looked at by the library's experts and not added.

    Example: wordreel like ~/Videos/party.mp4 --moment 95
    """
    from wordreel.api import Library

    opened = Library(library, create=False)
    found = opened.like(video, limit, moment=moment, folder=folder, after=after, before=before)
    if as_json:
        print_json([asdict(match) for match in found])
        return
    for match in found:
        typer.echo(line(match))
        start, end = match.like
        at = f"like {clock(start)} – {clock(end)}  ·  " if end > start else ""
        typer.echo(f"      {at}{reasons(match)}")
    if not found:
        typer.echo("Nothing to show: no other video of the library can be compared with it.")
