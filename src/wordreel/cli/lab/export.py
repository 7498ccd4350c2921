"""`wordreel export`: what was trained, as one file for search without torch or in the published layout."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from wordreel.cli.console.common import JsonOption, print_json, printable

DEFAULT_NAME, PUBLISHED_NAME, APPEARANCE_NAME = (
    "reel.safetensors",
    "pytorch_model.bin",
    "appearance.safetensors",
)


def export(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="The folder of a training, or of one of its models.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Where the file goes.",
            show_default=f"RUN/{DEFAULT_NAME}, RUN/{APPEARANCE_NAME} or RUN/{PUBLISHED_NAME}",
        ),
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
    packed: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="Of an appearance network: measure what 8 bits cost on the validation part of this pack.",
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Write a trained model as one file: the default model, the appearance network, or one on CLIP.

    The default model (recipe `reel`) becomes the file that ships with wordreel: matrices as bytes with a
    scale per row, a seventh of the size, for search without torch. So does the network of the appearance
    expert (recipe `appearance`). CLIP4Clip and the models that build on it
    become a checkpoint that the published code loads. `wordreel use` takes a training's folder as it is.

    Example: wordreel export runs/default --out reel.safetensors
    Example: wordreel export runs/appearance --packed pictures.pack
    Example: wordreel export runs/clip4clip-msvd --out pytorch_model.bin.4
    """
    from wordreel.lab.models.clip.config import KINDS
    from wordreel.models.model_store import WEIGHTS, find_checkpoint, model_kind

    folder = find_checkpoint(run)
    kind = model_kind(folder / WEIGHTS)
    published, appearance = kind in KINDS, kind == "appearance"
    if packed is not None and not appearance:
        raise typer.BadParameter("--packed is for an appearance network")
    name = PUBLISHED_NAME if published else APPEARANCE_NAME if appearance else DEFAULT_NAME
    path = out or run / name
    if path.exists() and not overwrite:
        raise typer.BadParameter(f"{printable(path)} exists; name another --out, or --overwrite")
    cost: dict[str, Any] = {}
    if appearance:
        digest, cost = _export_appearance(folder, path, packed)
    else:
        digest = _export_published(folder, path, unused) if published else _export_default(folder, path)
    if as_json:
        print_json({"file": str(path), "bytes": path.stat().st_size, "sha256": digest, **cost})
        return
    typer.echo(f"wrote {printable(path)}: {path.stat().st_size / 1e6:.1f} MB, sha256 {digest[:16]}…")
    if cost:
        typer.echo(f"  8 bits: cosine of features {cost['cosine']:.4f} (least {cost['least_cosine']:.4f})")
    for source, recalls in cost.get("recall", {}).items():
        before, after = (" ".join(f"{value:.1f}" for value in recalls[key]) for key in ("before", "after"))
        typer.echo(f"  {printable(source)}, text to video R@1 R@5 R@10: {before} before, {after} after")


def _export_default(folder: Path, path: Path) -> str:
    from wordreel.models.model_store import WEIGHTS
    from wordreel.models.reel import checkpoint

    checkpoint.export(path, checkpoint.load(folder / WEIGHTS))
    return checkpoint.load(path).digest


def _export_appearance(folder: Path, path: Path, packed: Path | None) -> tuple[str, dict[str, Any]]:
    try:
        from wordreel.lab.training.appearance.export import export_appearance, measure_cost
    except ModuleNotFoundError as error:
        from wordreel.models.laboratory import needs_torch

        if (error.name or "").partition(".")[0] != "torch":
            raise
        raise needs_torch(folder) from None
    digest = export_appearance(folder, path)
    return digest, {} if packed is None else measure_cost(folder, path, packed)


def _export_published(folder: Path, path: Path, unused: Path | None) -> str:
    from wordreel.lab.checkpoints.video_text import save_published
    from wordreel.lab.models.checkpoint import load_video_text
    from wordreel.runtime.torch_files.torch_file import read_state_dict
    from wordreel.util.checksum import file_sha256

    parts = None if unused is None else read_state_dict(unused)
    save_published(path, load_video_text(folder)[0], parts)
    return file_sha256(path)
