"""`wordreel convert`: a published video-text checkpoint as a folder that training starts from."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer

from wordreel.cli.console.common import JsonOption, print_json, printable


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
        Literal["released", "paper", "released-2021"],
        typer.Option(
            help="Compute as the published repository does today, as the paper says, or as CLIP4Clip's "
            "repository did until July 2021; the same weights give other similarities.",
        ),
    ] = "released",
    frames: Annotated[
        int | None,
        typer.Option(
            min=1, help="Frames of a video that it is used with; 64 for long videos.", show_default="12"
        ),
    ] = None,
    words: Annotated[
        int | None,
        typer.Option(
            min=3, help="Tokens of a caption that it is used with; 64 for paragraphs.", show_default="32"
        ),
    ] = None,
    frame_rate: Annotated[
        float | None,
        typer.Option(
            min=0.01,
            help="Frames a second that it is used with.",
            show_default="1; CLIP2Video 2.5, of VATEX 5",
        ),
    ] = None,
    name: Annotated[str | None, typer.Option(help="What to call the model.", show_default="its kind")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing model.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Convert a published video-text checkpoint into a folder for training and export.

    Sizes are read from the checkpoint; nothing in it is run. `wordreel export FOLDER` writes the published
    layout again.

    Example: wordreel convert pytorch_model.bin.4 --out models/ts2net --mode paper
    """
    from wordreel.lab.checkpoints.video_text import convert_video_text
    from wordreel.models.model_store import WEIGHTS

    if (out / WEIGHTS).exists() and not overwrite:
        raise typer.BadParameter(f"{printable(out)} has a model; name another --out, or --overwrite")
    done = convert_video_text(
        checkpoint,
        out,
        mode=mode,
        max_frames=frames,
        max_words=words,
        frame_rate=frame_rate,
        name=name,
    )
    if as_json:
        print_json({"folder": str(out), **asdict(done)})
        return
    for note in done.notes:
        typer.echo(f"Note: {note}", err=True)
    head = f" with the {done.head} head and {done.patch} patches" if done.head else ""
    typer.echo(
        f"wrote {printable(out)}: {done.kind}{head}, {done.parameters:,} parameters, mode {done.mode}, "
        f"at most {done.max_frames} frames ({done.frame_rate:g} a second) and {done.max_words} words"
    )
