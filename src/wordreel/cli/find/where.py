"""`wordreel where`."""

from __future__ import annotations

from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import typer

from wordreel.cli.console.common import JsonOption, LibraryOption, beta_number, clock, percent, print_json
from wordreel.search.query_fields import SearchNorm

WIDTH = 60  # characters of the strip
BARS = " ▁▂▃▄▅▆▇█"


def where(
    video: Annotated[Path, typer.Argument(help="A file of the library.")],
    words: Annotated[str, typer.Argument(help="What to look for, in your own words.")],
    library: LibraryOption,
    norm: Annotated[SearchNorm, typer.Option(help="Query-bank normalisation, as in search.")] = "auto",
    bank: Annotated[str | None, typer.Option(help="The query bank.", show_default="the checked one")] = None,
    beta: Annotated[str, typer.Option(help="β of the inverted softmax, or auto.")] = "auto",
    as_json: JsonOption = False,
) -> None:
    """Show where in a video some words match: a strip over time, and the best moments.

    A full bar is certain, an empty one does not match. Without a query bank a full bar matches as well as
    anything in the library, and an empty one no better than the median.

    Example: wordreel where ~/Videos/party.mp4 "people dance"
    """
    from wordreel.library import Library

    with Library(library, create=False) as opened:
        timeline = opened.where(video, words, norm=norm, bank=bank, beta=beta_number(beta))
    if as_json:
        print_json(asdict(timeline))
        return
    typer.echo(f"{clock(0)} │{strip(timeline.scores)}│ {clock(timeline.duration)}")
    for start, end, score in timeline.moments:
        typer.echo(f"  {percent(score):>4}  {clock(start)} – {clock(end)}")


def strip(scores: tuple[float, ...]) -> str:
    """Scores in [0, 1] as bars, at most `WIDTH` of them; each shows the best of its part.

    >>> strip((0.0, 0.5, 1.0))
    ' ▄█'
    """
    count = min(WIDTH, len(scores))
    edges = [round(number * len(scores) / count) for number in range(count + 1)]
    best = [max(scores[low:high]) for low, high in pairwise(edges)]
    return "".join(BARS[round(value * (len(BARS) - 1))] for value in best)
