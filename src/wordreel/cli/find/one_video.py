"""Verbs about one video: `wordreel where`, `wordreel caption` and `wordreel cut`."""

from __future__ import annotations

from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import typer

from wordreel.cli.console.common import (
    JsonOption,
    OpenLibrary,
    beta_number,
    clock,
    counter,
    percent,
    print_result,
    printable,
    size_of,
)
from wordreel.cli.find.hit_lines import reasons
from wordreel.search.query_fields import SearchNorm

WIDTH = 60  # characters of the strip
BARS = " ▁▂▃▄▅▆▇█"


def where(
    video: Annotated[Path, typer.Argument(help="A file of the library.")],
    words: Annotated[str, typer.Argument(help="What to look for, in your own words.")],
    library: OpenLibrary,
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
    timeline = library.where(video, words, norm=norm, bank=bank, beta=beta_number(beta))
    bar = f"{clock(0)} │{strip(timeline.scores)}│ {clock(timeline.duration)}"
    moments = [
        f"  {percent(score):>4}  {clock(start)} – {clock(end)}" for start, end, score in timeline.moments
    ]
    print_result(as_json, timeline, [bar, *moments])


def strip(scores: tuple[float, ...]) -> str:
    """Draw scores in [0, 1] as bars, at most `WIDTH` of them; each shows the best of its part.

    >>> strip((0.0, 0.5, 1.0))
    ' ▄█'
    """
    count = min(WIDTH, len(scores))
    edges = [round(number * len(scores) / count) for number in range(count + 1)]
    best = [max(scores[low:high]) for low, high in pairwise(edges)]
    return "".join(BARS[round(value * (len(BARS) - 1))] for value in best)


def caption(
    video: Annotated[Path, typer.Argument(help="A file, in the library or not.")],
    library: OpenLibrary,
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
    from wordreel.search.caption import read_texts

    texts = read_texts(source)
    matches = library.caption(video, texts, limit, norm=norm, beta=beta_number(beta))
    lines = []
    for match in matches:
        moment = f"  [{clock(match.start)} – {clock(match.end)}]" if match.end > match.start else ""
        lines.append(f"{match.rank:>3}.  {match.score:.3f}  “{printable(match.text)}”{moment}")
        lines.append(f"      {reasons(match)}")
    print_result(as_json, matches, lines)


def cut(
    video: Annotated[Path, typer.Argument(help="A video or a sound, in the library or not.")],
    start: Annotated[str, typer.Argument(help="Where the clip begins: seconds, or 1:05.5.")],
    end: Annotated[str, typer.Argument(help="Where it ends.")],
    out: Annotated[
        Path | None,
        typer.Argument(help="The new file: .mp4, .m4v, .m4a, .mkv or .mka.", show_default="in this folder"),
    ] = None,
    tolerance: Annotated[
        float,
        typer.Option(min=0.0, help="Seconds that it may begin early so that nothing is encoded; 0 is exact."),
    ] = 0.5,
    playable: Annotated[
        bool, typer.Option("--playable", help="Encode what browsers might not play.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the new file if it exists.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Save a moment as a clip of its own. The video is only read.

    Pictures are copied as they are if a key frame is near enough, and encoded as H.264 if not. Sound stays.

    Example: wordreel cut ~/Videos/party.mp4 1:35 1:48 cake.mp4
    """
    from wordreel.media.clip_file import cut_clip

    first, last = seconds_of(start), seconds_of(end)
    target = out or Path(default_name(video.name, first, last))
    report = cut_clip(
        video,
        first,
        last,
        target,
        tolerance=tolerance,
        playable=playable,
        overwrite=overwrite,
        on_progress=counter("seconds cut"),
    )
    line = f"{printable(target)}: {clock(report.start)} – {clock(report.end)}, {size_of(report.bytes)}"
    done = [f"{what} {how}" for what, how in (("pictures", report.picture), ("sound", report.sound))]
    how = f"  {', '.join(part for part in done if not part.endswith('none'))}"
    print_result(as_json, {"path": str(target)} | asdict(report), [line, how])


def seconds_of(text: str) -> float:
    """Format seconds as people write them.

    >>> seconds_of("65"), seconds_of("1:05.5"), seconds_of("1:00:00")
    (65.0, 65.5, 3600.0)
    """
    total = 0.0
    parts = text.strip().split(":")
    try:
        if len(parts) > 3 or not all(part and part[0].isdigit() for part in parts):
            raise ValueError
        for part in parts:
            total = 60 * total + float(part)
    except ValueError:
        raise typer.BadParameter(f"a time is seconds or 1:05.5, not {text!r}.") from None
    return total


def default_name(name: str, start: float, end: float) -> str:
    """Return the name of a clip that the user gave none.

    >>> default_name("party.avi", 65, 3671.25)
    'party 0.01.05-1.01.11.mp4'
    """
    return f"{Path(name).stem} {_dotted(start)}-{_dotted(end)}.mp4"


def _dotted(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}.{minutes % 60:02d}.{rest:02d}"
