"""`wordreel cut`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from wordreel.cli.console.common import JsonOption, clock, counter, print_json, printable, size_of


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
    if as_json:
        print_json({"path": str(target)} | asdict(report))
        return
    typer.echo(f"{printable(target)}: {clock(report.start)} – {clock(report.end)}, {size_of(report.bytes)}")
    done = [f"{what} {how}" for what, how in (("pictures", report.picture), ("sound", report.sound))]
    typer.echo(f"  {', '.join(part for part in done if not part.endswith('none'))}")


def seconds_of(text: str) -> float:
    """Seconds as people write them.

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
    """What a clip is called unless the user says so.

    >>> default_name("party.avi", 65, 3671.25)
    'party 0.01.05-1.01.11.mp4'
    """
    return f"{Path(name).stem} {_dotted(start)}-{_dotted(end)}.mp4"


def _dotted(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}.{minutes % 60:02d}.{rest:02d}"
