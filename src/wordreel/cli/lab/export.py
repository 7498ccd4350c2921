"""`wordreel export`: a trained model on CLIP as a checkpoint in the published layout."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wordreel.cli.console.common import JsonOption, print_json, printable

NAME = "pytorch_model.bin"


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
