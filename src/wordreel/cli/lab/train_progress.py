"""What `wordreel train` prints before and while it trains, on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from wordreel.cli.console.common import printable
from wordreel.errors import NextStep, TrainingError

if TYPE_CHECKING:
    from wordreel.lab.training.open_data import TrainingPairs
    from wordreel.lab.training.progress import TrainCallback, TrainProgress
    from wordreel.lab.training.recipe import Recipe

LINE_EVERY = 60.0  # seconds between lines within an epoch, where standard error is no terminal
LONGEST = 360_000.0  # seconds; longer estimates are no estimates


def check_out_folders(folders: Iterable[Path], resume: bool, overwrite: bool) -> None:
    """Before any work: the folders can be written to, and no earlier run is overwritten by mistake."""
    from wordreel.lab.training.run_lock import check_writable
    from wordreel.lab.training.state import FILE

    for folder in folders:
        check_writable(folder)
        if (folder / FILE).exists() and not (resume or overwrite):
            raise TrainingError(
                f"{printable(folder)} already holds a run",
                NextStep(
                    "continue it with --resume, replace it with --overwrite, or write to another folder",
                    command="train … --out DIR",
                ),
            )


def print_data_summary(recipe: Recipe, opened: TrainingPairs) -> None:
    """How much data there is, and what a user wants to know before hours of training."""
    train, val = opened.train, opened.val
    parts = [f"{len(train):,} videos, {int(train.counts.sum()):,} captions"]
    if val is not None:
        parts.append(f"validation: {len(val):,} videos, {int(val.counts.sum()):,} captions")
    if train.missing:
        parts.append(f"skipped {train.missing:,} captioned items without features")
    typer.echo(f"{printable(train.name)}: {'; '.join(parts)}", err=True)
    absent = [
        name for name in recipe.model.names if name not in train.rows or not len(train.rows[name].values)
    ]
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


def progress_printer() -> TrainCallback:
    """One line that is redrawn in a terminal; elsewhere a line per epoch, and one a minute within it."""
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
    """
    >>> from wordreel.lab.training.progress import TrainProgress
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
    """
    >>> clock_time(21), clock_time(7384), clock_time(float("inf"))
    ('0:21', '2:03:04', '?')
    """
    if seconds > LONGEST:
        return "?"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"


def end_progress_line() -> None:
    """Start what follows on a new line."""
    if sys.stderr.isatty():
        typer.echo("", err=True)
