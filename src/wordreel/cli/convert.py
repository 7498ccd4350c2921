"""`wordreel convert`: a published video-text checkpoint as a folder that training starts from."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer

from wordreel.cli.common import JsonOption, print_json, printable


def convert(
    checkpoint: Annotated[
        Path,
        typer.Argument(
            metavar="CHECKPOINT",
            exists=True,
            dir_okay=False,
            help="A published CLIP4Clip, CLIP2Video or TS2-Net.",
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where the model's folder goes.")],
    mode: Annotated[
        Literal["released", "paper"],
        typer.Option(
            help="Compute as the released code does, or as the paper says, which gives other similarities "
            "with the same weights.",
        ),
    ] = "released",
    frames: Annotated[
        int, typer.Option(min=1, help="Frames of a video that it is used with: 12, or 64 for long videos.")
    ] = 12,
    words: Annotated[
        int, typer.Option(min=3, help="Tokens of a caption that it is used with: 32, or 64 for paragraphs.")
    ] = 32,
    name: Annotated[str | None, typer.Option(help="What to call the model.", show_default="its kind")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing model.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Convert a published video-text checkpoint into a folder for training and export.

    Sizes are read from the checkpoint; nothing in it is run. `wordreel export FOLDER` writes the published
    layout again.

    Example: wordreel convert pytorch_model.bin.4 --out models/ts2net --mode paper
    """
    from wordreel.models.convert.video_text import convert_video_text
    from wordreel.models.model_store import WEIGHTS

    if (out / WEIGHTS).exists() and not overwrite:
        raise typer.BadParameter(f"{printable(out)} has a model; name another --out, or --overwrite")
    done = convert_video_text(checkpoint, out, mode=mode, max_frames=frames, max_words=words, name=name)
    if as_json:
        print_json({"folder": str(out), **asdict(done)})
        return
    for note in done.notes:
        typer.echo(f"Note: {note}", err=True)
    typer.echo(f"wrote {printable(out)}: {done.kind}, {done.parameters:,} parameters")
