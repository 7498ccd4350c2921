"""`wordreel like`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from wordreel.cli.console.common import JsonOption, LibraryOption, print_json
from wordreel.cli.console.option_groups import expand_options
from wordreel.cli.find.filters import ANY_FILE, FilterOptions
from wordreel.cli.find.hit_lines import print_hits


@expand_options
def like(
    video: Annotated[Path, typer.Argument(help="A file, in the library or not.")],
    library: LibraryOption,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many videos to show.")] = 10,
    moment: Annotated[
        float | None, typer.Option(min=0.0, help="Only what is at this second of the file.")
    ] = None,
    filters: FilterOptions = ANY_FILE,
    as_json: JsonOption = False,
) -> None:
    """Find videos that are like a video.

    The library's experts analyse a file that is not in the library; it is not added.

    Example: wordreel like ~/Videos/party.mp4 --moment 95
    """
    from wordreel.library import Library

    with Library(library, create=False) as opened:
        matches = opened.like(video, limit=limit, moment=moment, **filters.chosen())
    if as_json:
        print_json([asdict(match) for match in matches])
        return
    if matches:
        print_hits(matches)
    else:
        typer.echo("Nothing to show: no other video of the library can be compared with it.")
