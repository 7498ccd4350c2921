"""`wordreel convert` and `wordreel export`: published video-text checkpoints read and written."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer

from wordreel.cli.console.common import JsonOption, print_json, printable

NAME = "pytorch_model.bin"


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


def export(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="The folder of a training, or of one of its models.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where the file goes.", show_default=f"RUN/{NAME}"),
    ] = None,
    unused: Annotated[
        Path | None,
        typer.Option(
            metavar="CHECKPOINT",
            exists=True,
            dir_okay=False,
            help="Of a TS2-Net: the published checkpoint whose parts that nothing uses are written too.",
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Write a trained CLIP4Clip, CLIP2Video or TS2-Net as a checkpoint that the published code loads.

    `wordreel use` takes the folder of any training as it is.

    Example: wordreel export runs/clip4clip-msvd --out pytorch_model.bin.4
    """
    from wordreel.errors import NextStep, WordreelError
    from wordreel.lab.checkpoints.video_text import save_published
    from wordreel.lab.models.checkpoint import load_video_text
    from wordreel.lab.models.clip.config import KINDS
    from wordreel.models.model_store import WEIGHTS, find_checkpoint, model_kind
    from wordreel.runtime.torch_file import read_state_dict
    from wordreel.util.checksum import file_sha256

    folder = find_checkpoint(run)
    if model_kind(folder / WEIGHTS) not in KINDS:
        raise WordreelError(
            f"{printable(folder)} is not a model on CLIP, and only those have a published layout",
            NextStep("search with it as it is", f"use {folder}"),
        )
    path = out or run / NAME
    if path.exists() and not overwrite:
        raise typer.BadParameter(f"{printable(path)} exists; name another --out, or --overwrite")
    parts = None if unused is None else read_state_dict(unused)
    save_published(path, load_video_text(folder)[0], parts)
    digest = file_sha256(path)
    if as_json:
        print_json({"file": str(path), "bytes": path.stat().st_size, "sha256": digest})
        return
    typer.echo(f"wrote {printable(path)}: {path.stat().st_size / 1e6:.1f} MB, sha256 {digest[:16]}…")
