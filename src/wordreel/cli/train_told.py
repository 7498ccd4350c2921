"""What `wordreel train` says before and while it trains, on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from wordreel.cli.common import long_time, printable
from wordreel.errors import TrainingError

if TYPE_CHECKING:
    from wordreel.training.open_data import Opened
    from wordreel.training.progress import Progress, Told
    from wordreel.training.recipe import Recipe

QUIET = 60.0  # seconds between lines within an epoch where nobody watches


def ready(folders: Iterable[Path], resume: bool, overwrite: bool) -> None:
    """Before any work: the folders can be written to, and no earlier run is lost by mistake."""
    from wordreel.training.claim import check_room
    from wordreel.training.state import FILE

    for folder in folders:
        check_room(folder)
        if (folder / FILE).exists() and not (resume or overwrite):
            raise TrainingError(
                f"{printable(folder)} holds a run already: --resume goes on with it, --overwrite begins "
                "anew, or name another --out"
            )


def tell_data(recipe: Recipe, opened: Opened) -> None:
    """How much there is to train on, and what a person would want to know before hours of it."""
    train, val = opened.train, opened.val
    told = [f"{len(train):,} videos and {int(train.counts.sum()):,} captions"]
    if val is not None:
        told.append(f"validated on {len(val):,} and {int(val.counts.sum()):,}")
    if train.missing:
        told.append(f"{train.missing:,} captioned items have no features and are left out")
    typer.echo(f"{printable(train.name)}: {'; '.join(told)}", err=True)
    nowhere = [
        name for name in recipe.model.names if name not in train.rows or not len(train.rows[name].values)
    ]
    if nowhere:
        typer.echo(f"note: no video has {', '.join(map(printable, nowhere))}; trained without", err=True)
    both = len(set(train.ids) & set(val.ids)) if val is not None else 0
    if both:
        typer.echo(
            f"note: {both:,} of the videos to validate on are trained on as well; their recall says little "
            "about new ones",
            err=True,
        )


def shown() -> Told:
    """One line that changes in a terminal; elsewhere one at the end of every epoch, and every minute."""
    last = time.monotonic()

    def told(now: Progress) -> None:
        nonlocal last
        recall = "" if now.recall is None else f"  recall {now.recall:.1f}"
        line = (
            f"epoch {now.epoch}/{now.epochs}  step {now.step}/{now.steps}  loss {now.loss:.4f}{recall}  "
            f"{now.rate:.1f} steps/s  {long_time(min(now.left, 1e9))} left"
        )
        ended = now.step * now.epochs == now.epoch * now.steps
        if sys.stderr.isatty():
            typer.echo(f"\r{line:<100}", nl=False, err=True)
        elif ended or time.monotonic() - last > QUIET:
            last = time.monotonic()
            typer.echo(line, err=True)

    return told


def end_line() -> None:
    """What follows begins on a line of its own."""
    if sys.stderr.isatty():
        typer.echo("", err=True)
