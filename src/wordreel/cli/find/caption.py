"""`wordreel caption`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from wordreel.cli.console.common import JsonOption, LibraryOption, beta_number, clock, print_json, printable
from wordreel.cli.find.hit_lines import reasons


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
        typer.Option(help="Lower captions that fit every video: none, dis, is, csls, nnn, cent or gc."),
    ] = "none",
    beta: Annotated[str, typer.Option(help="β of the inverted softmax, or auto: without labels.")] = "auto",
    as_json: JsonOption = False,
) -> None:
    """Choose the captions that describe a video best.

    The library's experts analyse a file that is not in the library; it is not added.

    Example: wordreel caption ~/Videos/party.mp4 --from captions.txt
    """
    from wordreel.library import Library
    from wordreel.search.caption_files import read_texts

    texts = read_texts(source)
    with Library(library, create=False) as opened:
        matches = opened.caption(video, texts, limit, norm=norm, beta=beta_number(beta))
    if as_json:
        print_json([asdict(match) for match in matches])
        return
    for match in matches:
        at = f"  [{clock(match.start)} – {clock(match.end)}]" if match.end > match.start else ""
        typer.echo(f"{match.rank:>3}.  {match.score:.3f}  “{printable(match.text)}”{at}")
        typer.echo(f"      {reasons(match)}")
