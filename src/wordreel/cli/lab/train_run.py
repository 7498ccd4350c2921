"""Run what a verb of `wordreel train` describes, and print how it goes."""

from __future__ import annotations

import os
import sys
import time
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import typer

from wordreel.cli.console.common import counter, long_time, print_json, printable
from wordreel.cli.lab.train_options import EncodingOptions, RecipeOptions, RunOptions
from wordreel.errors import NextStep, TrainingError
from wordreel.lab.training import recipe as recipes
from wordreel.lab.training.loop import TrainCallback, TrainProgress, TrainResult, pick_device, train
from wordreel.lab.training.open_data import PublishedTree, Sources
from wordreel.lab.training.pack_file import load_pack, save_pack
from wordreel.lab.training.recipe import Recipe
from wordreel.lab.training.run_lock import TrainingInterrupted, check_writable
from wordreel.lab.training.saved_state import FILE
from wordreel.lab.training.training_data import TrainingData, prepare

LINE_EVERY = 60.0  # seconds between lines within an epoch, where standard error is no terminal
LONGEST = 360_000.0  # seconds; longer estimates are no estimates
NO_ENCODING = EncodingOptions()


@dataclass(frozen=True)
class Training:
    """One command. `data` is where the pairs come from, or a packed file."""

    recipe: str
    data: Sources | PublishedTree | Path
    changes: RecipeOptions
    run: RunOptions
    encoding: EncodingOptions = NO_ENCODING
    overrides: tuple[str, ...] | list[str] = ()


def start(training: Training) -> None:
    """Train or pack, here or on workers."""
    run, pack = training.run, training.encoding.pack
    if (run.out is None) == (pack is None):
        raise typer.BadParameter("say where the model goes: --out DIR, or --pack FILE to pack the data.")
    if run.on is None and run.workers is not None:
        raise typer.BadParameter("--workers goes with --on.")
    if run.resume and run.overwrite:
        raise typer.BadParameter("--resume continues the run that --overwrite would replace: give one.")
    if run.on is None or pack is not None:
        _train_here(training)
        return
    from wordreel.workers.executor import open_executor
    from wordreel.workers.world import run_world

    first = replace(run, on=None, workers=None)
    again = replace(first, resume=True, overwrite=False)
    with redirect_stdout(sys.stderr), open_executor(run.on, run.workers, own_gpus=True) as executor:
        printed = run_world(
            executor,
            _train_here,
            (replace(training, run=first),),
            (replace(training, run=again),),
            lambda line: typer.echo(line, err=True),
        )
    typer.echo(printed, nl=False)


def _train_here(training: Training) -> None:
    """Train in this process, which may be one of many."""
    changes, encoding, run = training.changes, training.encoding, training.run
    overrides = [*changes.overrides(), *encoding.overrides(), *training.overrides]
    recipe = recipes.load(training.recipe, overrides)
    seeds = list(dict.fromkeys(changes.seed or [recipe.run.seed]))
    if run.out is None:
        _pack(recipe, training)
        return
    folders = {seed: run.out / f"seed-{seed}" if len(seeds) > 1 else run.out for seed in seeds}
    for folder in folders.values():
        _check_folder(folder, run)
    data = _load_data(recipe, training)
    results = {seed: _train(recipe.with_seed(seed), data, folder, run) for seed, folder in folders.items()}
    _print_results(results, run.as_json)


def _pack(recipe: Recipe, training: Training) -> None:
    path = training.encoding.pack
    assert path is not None  # noqa: S101 - the options were checked
    save_pack(path, recipe, _load_data(recipe, training))
    typer.echo(f"wrote {printable(path)}: {path.stat().st_size / 1e6:.1f} MB")


def _check_folder(folder: Path, run: RunOptions) -> None:
    """Before any work: the folder can be written to, and no earlier run is overwritten by mistake."""
    check_writable(folder)
    if (folder / FILE).exists() and not (run.resume or run.overwrite):
        raise TrainingError(
            f"{printable(folder)} already holds a run",
            NextStep(
                "continue it with --resume, replace it with --overwrite, or write to another folder",
                command="train … --out DIR",
            ),
        )


def _load_data(recipe: Recipe, training: Training) -> TrainingData:
    """Open the source of data and encode its captions, or load a pack; say how much there is."""
    if isinstance(training.data, Path):
        data = load_pack(training.data, recipe)
        _print_summary(recipe, data)
        return data
    pairs = training.data.open(recipe, pick_device(training.run.device))
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "wordreel" / "captions"
    encoded = counter("captions encoded")
    data = prepare(recipe, pairs.train, pairs.val, teachers=pairs.teachers, on_progress=encoded, cache=cache)
    _print_summary(recipe, data)
    return data


def _print_summary(recipe: Recipe, data: TrainingData) -> None:
    """How much data there is, and what a user wants to know before hours of training."""
    train, val = data.train, data.val
    parts = [f"{len(train):,} videos, {int(train.counts.sum()):,} captions"]
    if val is not None:
        parts.append(f"validation: {len(val):,} videos, {int(val.counts.sum()):,} captions")
    if train.missing:
        what = "a file" if recipe.reads_frames else "features"
        parts.append(f"skipped {train.missing:,} captioned items without {what}")
    typer.echo(f"{printable(train.name)}: {'; '.join(parts)}", err=True)
    experts = getattr(recipe.model, "names", ())
    absent = [name for name in experts if name not in train.rows or not len(train.rows[name].values)]
    if absent:
        names = ", ".join(map(printable, absent))
        typer.echo(f"note: no video has features of {names}; training without", err=True)
    both = len(set(train.ids) & set(val.ids)) if val is not None else 0
    if both:
        typer.echo(
            f"note: {both:,} validation videos are also training videos; recall on them says little about "
            "new videos",
            err=True,
        )


def _train(recipe: Recipe, data: TrainingData, out: Path, run: RunOptions) -> TrainResult:
    try:
        result = train(
            recipe, data, out, device=run.device, resume=run.resume, on_progress=progress_printer()
        )
        if run.resume and not result.steps:
            typer.echo(f"the run in {printable(out)} is complete: nothing is left to do", err=True)
        return result
    except KeyboardInterrupt as stopped:
        if isinstance(stopped, TrainingInterrupted):
            message = f"{stopped}; the same command with --resume continues from there"
        else:  # a second one, or one in several processes: nothing was saved now
            message = (
                "stopped at once; steps since the last saved state are lost, and the same command with "
                "--resume continues from it"
            )
        _end_progress_line()
        typer.echo(f"wordreel: {message}", err=True)
        raise typer.Exit(130) from None
    finally:
        _end_progress_line()


def progress_printer() -> TrainCallback:
    """Return a callback: one line redrawn in a terminal, elsewhere one per epoch and one a minute within."""
    last = time.monotonic()

    def print_progress(now: TrainProgress) -> None:
        nonlocal last
        if sys.stderr.isatty():
            typer.echo(f"\r{progress_line(now):<100}", nl=False, err=True)
        elif now.epoch_ended or time.monotonic() - last > LINE_EVERY:
            last = time.monotonic()
            typer.echo(progress_line(now), err=True)

    return print_progress


def progress_line(now: TrainProgress) -> str:
    """Return one line about a run.

    >>> progress_line(TrainProgress("training", 120, 2400, epoch=3, epochs=60, loss=0.4119, recall=23.08,
    ...                             steps_per_second=108.6, seconds_left=21))
    'epoch 3/60 · step 120/2400 · loss 0.412 · R@geo 23.1 · 109 steps/s · 0:21 left'
    """
    speed = now.steps_per_second
    parts = [f"epoch {now.epoch}/{now.epochs}", f"step {now.done}/{now.total}", f"loss {now.loss:.3f}"]
    if now.recall is not None:
        parts.append(f"R@geo {now.recall:.1f}")
    parts.append(f"{speed:.0f} steps/s" if speed >= 10 else f"{speed:.2f} steps/s")
    parts.append(f"{clock_time(now.seconds_left)} left")
    return " · ".join(parts)


def clock_time(seconds: float) -> str:
    """Return hours, minutes and seconds.

    >>> clock_time(21), clock_time(7384), clock_time(float("inf"))
    ('0:21', '2:03:04', '?')
    """
    if seconds > LONGEST:
        return "?"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"


def _end_progress_line() -> None:
    if sys.stderr.isatty():
        typer.echo("", err=True)


def _facts(seed: int, result: TrainResult) -> dict[str, Any]:
    return {
        "seed": seed,
        "best": str(result.best),
        "epoch": result.epoch,
        "score": result.score,
        "figures": result.figures and result.figures.to_json(),
        "seconds": round(result.seconds, 1),
        "steps_per_second": round(result.steps_per_second, 2),
        **result.loading,
    }


def _print_results(results: dict[int, TrainResult], as_json: bool) -> None:
    if as_json:
        print_json([_facts(seed, result) for seed, result in results.items()])
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
