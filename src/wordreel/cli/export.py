"""`wordreel export`: a trained default model as the small file that needs no torch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wordreel.cli.common import JsonOption, print_json, printable

NAME = "reel.safetensors"


def export(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="The folder of a training, or of one of its models.")
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where the file goes.", show_default=f"RUN/{NAME}")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Write a trained default model (recipe `reel`) as one small file for search without torch.

    Matrices become bytes with a scale per row, a seventh of the size. `wordreel use` takes a training's
    folder as it is; the file is what ships with wordreel.

    Example: wordreel export runs/default --out reel.safetensors
    """
    from wordreel.models.model_store import WEIGHTS, find_checkpoint
    from wordreel.models.reel import checkpoint

    path = out or run / NAME
    if path.exists() and not overwrite:
        raise typer.BadParameter(f"{printable(path)} exists; name another --out, or --overwrite")
    loaded = checkpoint.load(find_checkpoint(run) / WEIGHTS)
    checkpoint.export(path, loaded)
    digest = checkpoint.load(path).digest
    if as_json:
        print_json({"file": str(path), "bytes": path.stat().st_size, "sha256": digest})
        return
    typer.echo(f"wrote {printable(path)}: {path.stat().st_size / 1e6:.1f} MB, sha256 {digest[:16]}…")
