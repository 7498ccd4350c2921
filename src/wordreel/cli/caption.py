"""`wordreel caption`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from wordreel.cli.common import JsonOption, LibraryOption, beta_number, clock, print_json, printable
from wordreel.cli.search import reasons


def caption(
    video: Annotated[Path, typer.Argument(help="A file, in the library or not.")],
    library: LibraryOption,
    source: Annotated[
        str,
        typer.Option(
            "--from", help="Captions to choose from: .txt (one a line), .json, FILE.json:key, .jsonl or .csv."
        ),
    ],
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many captions to show.")] = 5,
    norm: Annotated[
        str,
        typer.Option(help="Hold back captions that fit all videos: none, dis, is, csls, nnn, cent or gc."),
    ] = "none",
    beta: Annotated[str, typer.Option(help="β of the inverted softmax, or auto: without labels.")] = "auto",
    as_json: JsonOption = False,
) -> None:
    """Choose the captions that say best what a video shows.

    A file that is not in the library is looked at by the library's experts and not added.

    Example: wordreel caption ~/Videos/party.mp4 --from captions.txt
    """
    from wordreel.api import Library
    from wordreel.search.caption_files import read_texts

    texts = read_texts(source)
    found = Library(library, create=False).caption(video, texts, limit, norm=norm, beta=beta_number(beta))
    if as_json:
        print_json([asdict(one) for one in found])
        return
    for one in found:
        at = f"  [{clock(one.start)} – {clock(one.end)}]" if one.end > one.start else ""
        typer.echo(f"{one.rank:>3}.  {one.score:.3f}  “{printable(one.text)}”{at}")
        typer.echo(f"      {reasons(one)}")
