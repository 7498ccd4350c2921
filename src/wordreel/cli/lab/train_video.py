"""`wordreel train` with a recipe of a model that reads frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from wordreel.cli.console.common import printable
from wordreel.cli.lab.train_options import (
    DataOptions,
    PackOptions,
    RecipeOptions,
    RunOptions,
    one_each,
    options_given,
    or_all,
)

if TYPE_CHECKING:
    from wordreel.lab.training.video.recipe import VideoRecipe
    from wordreel.lab.training.video.video_pairs import VideoData, VideoSource


def check_video_options(
    data: DataOptions, changes: RecipeOptions, run: RunOptions, pack: PackOptions
) -> None:
    """Refuse options that are for models of features, and no or several sources of videos."""
    wrong = options_given(
        {
            "--kind": data.kind,
            "--teacher": changes.teacher,
            "--denoise": changes.denoise,
            "--pack": pack.pack,
            "--packed": pack.packed,
            "--cache": pack.cache,
        }
    )
    if wrong:
        raise typer.BadParameter(f"{', '.join(wrong)} cannot be used with a recipe that reads frames.")
    if data.videos and data.library:
        raise typer.BadParameter("videos come from --videos or from --library: give one.")
    if not data.captions and not data.data:
        raise typer.BadParameter(
            "say what to train on: --videos DIR --captions FILE, or --videos DIR --data DIR with the "
            "annotation files of the recipe's dataset."
        )
    if data.captions and data.data:
        raise typer.BadParameter("captions come from --captions or from the annotations in --data: give one.")


def load_videos(recipe: VideoRecipe, options: DataOptions) -> VideoData:
    """Find the files and captions that the options name, and say how many there are."""
    from wordreel.lab.training.video.video_pairs import open_videos

    data = open_videos(recipe, *_sources(recipe, options))
    parts = [f"{len(data.train):,} videos, {int(data.train.pairs.counts.sum()):,} captions"]
    if data.val is not None:
        parts.append(f"validation: {len(data.val):,} videos, {int(data.val.pairs.counts.sum()):,} captions")
    if data.train.pairs.missing:
        parts.append(f"skipped {data.train.pairs.missing:,} captioned items without a file")
    typer.echo(f"{printable(data.train.pairs.name)}: {'; '.join(parts)}", err=True)
    return data


def _sources(recipe: VideoRecipe, options: DataOptions) -> tuple[list[VideoSource], list[VideoSource]]:
    from wordreel.lab.training.video.video_pairs import VideoSource

    if options.data is not None:
        folder = options.videos[0] if options.videos else None
        library = options.library[0] if options.library else None
        named = [
            options.split[0] if options.split else recipe.data.train,
            options.val_split or recipe.data.val,
        ]
        dataset = recipe.data.dataset
        train, val = (
            VideoSource(dataset, folder, library, annotations=options.data, split=split) for split in named
        )
        return [train], [val] if named[1] else []
    captions = options.captions or []
    count = len(captions)
    given = (options.videos, options.library, options.split, options.ids, options.share)
    folders, libraries, splits, ids, shares = (one_each(values, count) for values in given)
    train_sources = [
        VideoSource(
            captions[n],
            folders[n],
            libraries[n],
            split=or_all(splits[n]),
            ids=or_all(ids[n]),
            share=shares[n] or 1.0,
        )
        for n in range(count)
    ]
    validating = (options.val_videos, options.val_library, options.val_captions, options.val_ids)
    if not (options.val_split or any(validating)):
        return train_sources, []
    validation = VideoSource(
        options.val_captions or captions[0],
        options.val_videos or (None if options.val_library else folders[0]),
        options.val_library or (None if options.val_videos else libraries[0]),
        split=options.val_split,
        ids=options.val_ids,
    )
    return train_sources, [validation]
