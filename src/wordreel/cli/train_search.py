"""`wordreel train --search`: search hyper-parameters."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from wordreel.cli.common import print_json, printable
from wordreel.errors import NextStep, TrainingError

if TYPE_CHECKING:
    from wordreel.lab.training.recipe import Recipe
    from wordreel.lab.training.training_data import TrainingData


def load_space(path: Path, name: str, changes: Sequence[str]) -> dict[str, Any]:
    """Read a search space and check it against the recipe."""
    from wordreel.lab.training import recipe as recipes
    from wordreel.lab.training.search import import_optuna
    from wordreel.lab.training.search_space import check_space, read_space

    import_optuna()
    space = read_space(path)
    check_space(space, lambda more: recipes.load(name, [*changes, *more]))
    return space


def run_search(
    name: str,
    changes: Sequence[str],
    data: TrainingData,
    space: dict[str, Any],
    out: Path,
    trials: int,
    device: str,
    as_json: bool,
) -> None:
    """Search, and print the best trial's values as the options that repeat it."""
    from wordreel.lab.training import recipe as recipes
    from wordreel.lab.training.loop import train
    from wordreel.lab.training.search import search

    if data.val is None:
        raise TrainingError(
            "a search needs validation captions",
            NextStep("name a validation split", command="train … --val-split NAME"),
        )

    def train_trial(recipe: Recipe, folder: Path, report: Any) -> float:
        def on_epoch(row: dict[str, Any]) -> None:
            score = row.get("t2v_geometric_mean", 0.0)
            typer.echo(
                f"{printable(folder.name)} · epoch {row['epoch']}/{recipe.run.epochs} · "
                f"loss {row['loss']:.3f} · R@geo {score:.1f}",
                err=True,
            )
            report(row["epoch"], score)

        return train(recipe, data, folder, device=device, on_epoch=on_epoch).score or 0.0

    try:
        best = search(
            lambda more: recipes.load(name, [*changes, *more]), train_trial, space, out, trials=trials
        )
    except KeyboardInterrupt:
        typer.echo("\nwordreel: stopped; finished trials are saved, and the same command continues", err=True)
        raise typer.Exit(130) from None
    if as_json:
        print_json(vars(best))
        return
    typer.echo(f"best of {best.trials} trials ({best.stopped} stopped early): R@geo {best.score:.2f}")
    for key, value in best.overrides.items():
        typer.echo(f"  --set {key}={value}")
