"""`wordreel train`: one verb for each kind of data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from wordreel.cli.console.common import VerbGroup
from wordreel.cli.console.option_groups import expand_options
from wordreel.cli.lab.train_options import CaptionOptions, EncodingOptions, RecipeOptions, RunOptions
from wordreel.errors import TrainingError

app = VerbGroup(
    "Train a joint embedding by a recipe: on published features, libraries, videos or a packed file.\n\n"
    "Stop with Ctrl-C; the same command with --resume continues.",
    no_args_is_help=True,
)

RecipeArgument = Annotated[
    str, typer.Argument(metavar="RECIPE", help="A recipe's name (`wordreel models`) or a .toml file.")
]
SplitOption = Annotated[str | None, typer.Option(help="The split to train on.", show_default="the recipe's")]
ValSplitOption = Annotated[
    str | None, typer.Option(help="The split to choose the best epoch on.", show_default="the recipe's")
]


def _check_torch() -> None:
    try:
        import torch  # noqa: F401
    except ImportError:
        raise TrainingError("training needs PyTorch: pip install 'wordreel[train]'") from None


def _start(recipe: str, data: Any, changes: RecipeOptions, run: RunOptions, **more: Any) -> None:
    from wordreel.cli.lab.train_run import Training, start

    start(Training(recipe, data, changes, run, **more))


@app.command("features")
@expand_options
def features(
    recipe: RecipeArgument,
    data: Annotated[
        Path, typer.Option(metavar="DIR", help="A published tree of features (CE, TeachText, MMT, MoEE).")
    ],
    changes: RecipeOptions,
    encoding: EncodingOptions,
    run: RunOptions,
    kind: Annotated[str | None, typer.Option(help="The tree's layout, where it cannot be detected.")] = None,
    split: SplitOption = None,
    val_split: ValSplitOption = None,
) -> None:
    """Train on a published tree of features.

    Example: wordreel train features ce-msvd --data MSVD --out runs/ce --seed 0 --seed 1 --seed 2
    """
    _check_torch()
    from wordreel.lab.training.open_data import PublishedTree

    _start(recipe, PublishedTree(data, kind, split, val_split), changes, run, encoding=encoding)


@app.command("library")
@expand_options
def library(
    recipe: RecipeArgument,
    library: Annotated[
        list[Path], typer.Option("--library", "-L", help="A library to train on; several are mixed.")
    ],
    captions: CaptionOptions,
    changes: RecipeOptions,
    encoding: EncodingOptions,
    run: RunOptions,
    val_library: Annotated[
        Path | None, typer.Option(help="The library to choose the best epoch on.", show_default="the first")
    ] = None,
) -> None:
    """Train on libraries with captions.

    A recipe that reads frames reads the libraries' files.

    Example: wordreel train library own-ce -L msvd.lib --captions MSVD --split train --out runs/own
    """
    _check_torch()
    sources = captions.sources("library", library, val_library)
    _start(recipe, sources, changes, run, encoding=encoding)


@app.command("videos")
@expand_options
def videos(
    recipe: RecipeArgument,
    captions: CaptionOptions,
    changes: RecipeOptions,
    run: RunOptions,
    videos: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR", help="A folder of videos or pictures named by id; several are mixed."),
    ] = None,
    val_videos: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The videos to choose the best epoch on.", show_default="the first"),
    ] = None,
    annotations: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The annotation files of the recipe's dataset, for --captions."),
    ] = None,
    backbone: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="The CLIP to start from: a Hugging Face folder or a checkpoint file (start.backbone).",
        ),
    ] = None,
) -> None:
    """Train a model that reads frames on videos with captions.

    Example: wordreel train videos clip4clip-mean-msvd --captions MSVD --backbone CLIP --out runs/c4c
    """
    _check_torch()
    from wordreel.lab.training import recipe as recipes

    if (captions.captions is None) == (annotations is None):
        raise typer.BadParameter("say what to train on: --captions FILE, or --annotations DIR.")
    if annotations is not None:
        captions = captions.of_dataset(recipes.load(recipe, changes.overrides()).data)
    sources = captions.sources("videos", videos or [], val_videos, annotations)
    more = [] if backbone is None else [f"start.backbone={backbone}"]
    _start(recipe, sources, changes, run, overrides=more)


@app.command("packed")
@expand_options
def packed(
    recipe: RecipeArgument,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file that --pack wrote.")],
    changes: RecipeOptions,
    run: RunOptions,
) -> None:
    """Train on a packed file, without libraries or published features.

    Example: wordreel train packed own-ce msvd.pack --out runs/own
    """
    _check_torch()
    _start(recipe, file, changes, run)
