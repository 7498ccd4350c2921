"""`wordreel train appearance`: the network of the appearance expert, on captioned pictures and videos."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from wordreel.cli.console.common import counter, printable
from wordreel.cli.lab.train_options import DataOptions, PackOptions, RecipeOptions, RunOptions, options_given
from wordreel.cli.lab.train_video import load_videos

if TYPE_CHECKING:
    from wordreel.lab.training.appearance.picture_set import AppearanceData
    from wordreel.lab.training.appearance.recipe import AppearanceRecipe


def check_picture_options(
    data: DataOptions, changes: RecipeOptions, run: RunOptions, pack: PackOptions
) -> None:
    """Refuse options that have no effect here, and no or several sources of pictures."""
    wrong = options_given(
        {
            "--data": data.data,
            "--kind": data.kind,
            "--teacher": changes.teacher,
            "--denoise": changes.denoise,
            "--start": changes.start,
            "--backbone": changes.backbone,
            "--cache": pack.cache,
        }
    )
    if wrong:
        raise typer.BadParameter(f"{', '.join(wrong)} cannot be used with this recipe.")
    files = options_given(
        {
            "--videos": data.videos,
            "--library": data.library,
            "--captions": data.captions,
            "--split": data.split,
            "--ids": data.ids,
            "--share": data.share,
            "--val-videos": data.val_videos,
            "--val-library": data.val_library,
            "--val-captions": data.val_captions,
            "--val-split": data.val_split,
            "--val-ids": data.val_ids,
        }
    )
    if pack.packed is not None and files:
        raise typer.BadParameter(f"{', '.join(files)} cannot be used with --packed.")
    if data.videos and data.library:
        raise typer.BadParameter("files come from --videos or from --library: give one.")
    if pack.packed is None and not data.captions:
        raise typer.BadParameter(
            "say what to train on: --captions FOLDER_OR_FILE (with --videos DIR where the files lie "
            "elsewhere), or --packed FILE."
        )


def load_data(
    recipe: AppearanceRecipe, options: DataOptions, pack: PackOptions, device: str
) -> AppearanceData:
    """Decode the files that the options name, or load a pack; say how much there is."""
    from wordreel.lab.training.loop import pick_device

    picked = pick_device(device)
    if pack.packed is not None:
        from wordreel.lab.training.appearance.pack_file import load_pictures

        data = load_pictures(pack.packed, recipe)
    else:
        from wordreel.lab.training.appearance.read_pictures import prepare_pictures

        videos = load_videos(recipe, options)
        data = prepare_pictures(recipe, videos, device=picked, on_progress=counter("files read"))
    parts = [f"{len(data.train):,} items, {len(data.train.lengths):,} pictures"]
    if data.val is not None:
        parts.append(f"validation: {len(data.val):,} items")
    if data.train.pairs.missing:
        parts.append(f"skipped {data.train.pairs.missing:,} without a file that can be read")
    typer.echo(f"{printable(data.train.pairs.name)}: {'; '.join(parts)}", err=True)
    return data


def pack_data(recipe: AppearanceRecipe, options: DataOptions, device: str, path: Path) -> None:
    """Write the decoded, encoded data to one file."""
    from wordreel.lab.training.appearance.pack_file import save_pictures

    save_pictures(path, recipe, load_data(recipe, options, PackOptions(), device))
    typer.echo(f"wrote {printable(path)}: {path.stat().st_size / 1e6:.1f} MB")
