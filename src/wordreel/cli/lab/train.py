"""`wordreel train`."""

from __future__ import annotations

import os
import sys
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wordreel.cli.console.common import JsonOption, counter, long_time, print_json, printable
from wordreel.cli.console.option_groups import expand_options
from wordreel.cli.lab.train_options import DataOptions, PackOptions, RecipeOptions, RunOptions
from wordreel.cli.lab.train_progress import (
    check_out_folders,
    end_progress_line,
    print_data_summary,
    progress_printer,
)
from wordreel.cli.lab.train_video import check_video_options, load_videos
from wordreel.errors import TrainingError

if TYPE_CHECKING:
    import torch

    from wordreel.lab.training.loop import AnyData, AnyRecipe, TrainResult
    from wordreel.lab.training.open_data import TrainingPairs
    from wordreel.lab.training.recipe import Recipe
    from wordreel.lab.training.training_data import TrainingData

NO_DATA, NO_CHANGES, NO_PACK = DataOptions(), RecipeOptions(), PackOptions()
DEFAULT_RUN = RunOptions()


@expand_options
def train(
    recipe: Annotated[
        str, typer.Argument(metavar="RECIPE", help="A recipe's name (`wordreel models`) or a .toml file.")
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where the model and the logs go.", show_default=False)
    ] = None,
    data: DataOptions = NO_DATA,
    changes: RecipeOptions = NO_CHANGES,
    run: RunOptions = DEFAULT_RUN,
    pack: PackOptions = NO_PACK,
    as_json: JsonOption = False,
) -> None:
    """Train a joint embedding by a recipe, on published features or on libraries with captions.

    Stop with Ctrl-C; the same command with --resume continues.

    Example: wordreel train ce-msvd --data MSVD --out runs/ce --seed 0 --seed 1 --seed 2

    Example: wordreel train clip4clip-mean-msvd --captions MSVD --split train --backbone CLIP --out runs/c4c

    Example: wordreel train own-ce -L msvd.lib --captions MSVD --split train --val-split val --out runs/own
    """
    try:
        import torch  # noqa: F401
    except ImportError:
        raise TrainingError("training needs PyTorch: pip install 'wordreel[train]'") from None
    run.check(out, changes.seed, pack)
    if run.on is None:
        _train_here(recipe, out, data, changes, run, pack, as_json)
        return
    from wordreel.workers.open_executor import open_executor
    from wordreel.workers.world import run_world

    first = replace(run, on=None, workers=None)
    again = replace(first, resume=True, overwrite=False)
    with redirect_stdout(sys.stderr), open_executor(run.on, run.workers, own_gpus=True) as executor:
        printed = run_world(
            executor,
            _train_here,
            (recipe, out, data, changes, first, pack, as_json),
            (recipe, out, data, changes, again, pack, as_json),
            lambda line: typer.echo(line, err=True),
        )
    typer.echo(printed, nl=False)


def _train_here(
    recipe: str,
    out: Path | None,
    data: DataOptions,
    changes: RecipeOptions,
    run: RunOptions,
    pack: PackOptions,
    as_json: bool,
) -> None:
    """Train in this process, which may be one of many."""
    from wordreel.lab.training import recipe as recipes
    from wordreel.lab.training.video import recipe as video_recipes

    overrides = changes.overrides()
    if video_recipes.is_video_recipe(recipe):
        check_video_options(data, changes, run, pack)
        video_recipe = video_recipes.load(recipe, overrides)
        seeds = _folders(out or Path(), changes.seed, video_recipe.run.seed)
        check_out_folders(seeds.values(), run.resume, run.overwrite)
        videos = load_videos(video_recipe, data)
        _train_seeds(video_recipe, videos, seeds, run, as_json)
        return
    settings = recipes.load(recipe, overrides)
    data.check(pack)
    folders = _folders(out or Path(), changes.seed, settings.run.seed)
    if pack.pack is None:
        check_out_folders(folders.values(), run.resume, run.overwrite)
    prepared = _load_data(settings, data, pack, run.device)
    if pack.pack is not None:
        _pack(pack.pack, settings, prepared)
    else:
        _train_seeds(settings, prepared, folders, run, as_json)


def _folders(root: Path, seeds: list[int] | None, default: int) -> dict[int, Path]:
    """The folder of each seed's run."""
    chosen = list(dict.fromkeys(seeds or [default]))
    return {seed: root / f"seed-{seed}" if len(chosen) > 1 else root for seed in chosen}


def _train_seeds(
    recipe: AnyRecipe,
    data: AnyData,
    folders: dict[int, Path],
    run: RunOptions,
    as_json: bool,
) -> None:
    results = {
        seed: _train(recipe.with_seed(seed), data, folder, run.device, run.resume)
        for seed, folder in folders.items()
    }
    _print_results(results, as_json)


def _load_data(recipe: Recipe, data: DataOptions, pack: PackOptions, device: str) -> TrainingData:
    """Open the source of data that the options name, and encode its captions; or load a pack."""
    from wordreel.lab.training.loop import pick_device
    from wordreel.lab.training.training_data import prepare

    if pack.packed is not None:
        return _load_pack(recipe, pack.packed)
    picked = pick_device(device)
    pairs = _open(recipe, data, picked)
    print_data_summary(recipe, pairs)
    return prepare(
        recipe,
        pairs.train,
        pairs.val,
        teachers=pairs.teachers,
        on_progress=counter("captions encoded"),
        device=picked,
        cache=pack.cache or _default_cache(),
    )


def _open(recipe: Recipe, data: DataOptions, device: torch.device) -> TrainingPairs:
    from wordreel.lab.training.open_data import open_libraries, open_published

    if data.data is None:
        return open_libraries(recipe, data.library_sources(), data.validation_sources(), device)
    splits = (data.split[0] if data.split else recipe.data.train, data.val_split or recipe.data.val)
    return open_published(recipe, data.data, data.kind, splits, device)


def _load_pack(recipe: Recipe, path: Path) -> TrainingData:
    from wordreel.lab.training.open_data import TrainingPairs, with_teachers
    from wordreel.lab.training.pack_file import load_pack

    data = with_teachers(recipe, load_pack(path, recipe))
    print_data_summary(recipe, TrainingPairs(data.train, data.val))
    return data


def _pack(path: Path, recipe: Recipe, data: TrainingData) -> None:
    from wordreel.lab.training.pack_file import save_pack

    save_pack(path, recipe, data)
    typer.echo(f"wrote {printable(path)}: {path.stat().st_size / 1e6:.1f} MB")


def _default_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "wordreel" / "captions"


def _train(recipe: AnyRecipe, data: AnyData, out: Path, device: str, resume: bool) -> TrainResult:
    from wordreel.lab.training.interrupt import TrainingInterrupted
    from wordreel.lab.training.loop import train as run

    try:
        result = run(recipe, data, out, device=device, resume=resume, on_progress=progress_printer())
        if resume and not result.steps:
            typer.echo(f"the run in {printable(out)} is complete: nothing is left to do", err=True)
        return result
    except TrainingInterrupted as stopped:
        end_progress_line()
        typer.echo(f"wordreel: {stopped}; the same command with --resume continues from there", err=True)
        raise typer.Exit(130) from None
    except KeyboardInterrupt:  # a second one, or one in several processes: nothing was saved now
        end_progress_line()
        typer.echo(
            "wordreel: stopped at once; steps since the last saved state are lost, and the same command with "
            "--resume continues from it",
            err=True,
        )
        raise typer.Exit(130) from None
    finally:
        end_progress_line()


def _print_results(results: dict[int, TrainResult], as_json: bool) -> None:
    rows = []
    for seed, result in results.items():
        figures = result.figures.to_json() if result.figures is not None else None
        rows.append(
            {
                "seed": seed,
                "best": str(result.best),
                "epoch": result.epoch,
                "score": result.score,
                "figures": figures,
                "seconds": round(result.seconds, 1),
                "steps_per_second": round(result.steps_per_second, 2),
                **result.loading,
            }
        )
    if as_json:
        print_json(rows)
        return
    for seed, result in results.items():
        line = f"seed {seed}: epoch {result.epoch}, {long_time(result.seconds)}"
        if result.figures is not None:
            t, v = result.figures.t2v, result.figures.v2t
            line += (
                f"; validation, no post-processing: text to video R@1 {t.r1:.1f} R@5 {t.r5:.1f} "
                f"R@10 {t.r10:.1f} MdR {t.median_rank:g}; video to text {v.r1:.1f} {v.r5:.1f} {v.r10:.1f}"
            )
        typer.echo(line)
        if result.loading:
            clips, share = result.loading["clips_per_second"], result.loading["waiting_share"]
            typer.echo(f"  {clips:.0f} clips per second; the device waited for data {share:.1%} of the time")
        typer.echo(f"  wrote {printable(result.best)}")
