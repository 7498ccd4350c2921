"""`wordreel train --search`: hyper-parameters tried one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from wordreel.cli.common import print_json, printable
from wordreel.errors import TrainingError

if TYPE_CHECKING:
    from wordreel.training.material import Material
    from wordreel.training.recipe import Recipe


def read_space(path: Path, name: str, changes: Sequence[str]) -> dict[str, Any]:
    """The space in a file, checked against the recipe."""
    from wordreel.training import recipe as recipes
    from wordreel.training.search import library
    from wordreel.training.search import read_space as read
    from wordreel.training.space import check_space

    library()
    space = read(path)
    check_space(space, lambda more: recipes.load(name, [*changes, *more]))
    return space


def search(
    name: str,
    changes: Sequence[str],
    material: Material,
    space: dict[str, Any],
    out: Path,
    trials: int,
    device: str,
    as_json: bool,
) -> None:
    """Search, and print the best trial's settings as the options that repeat it."""
    from wordreel.training import recipe as recipes
    from wordreel.training.loop import train as run
    from wordreel.training.search import search as searched

    if material.val is None:
        raise TrainingError(
            "a search needs captions to measure on: --val-split or --val-ids (of a tree: data.val)"
        )

    def trained(recipe: Recipe, folder: Path, report: Any) -> float:
        def heard(row: dict[str, Any]) -> None:
            told = (
                f"{printable(folder.name)}  epoch {row['epoch']}/{recipe.run.epochs}  loss {row['loss']:.4f}"
            )
            score = row.get("t2v_geometric_mean", 0.0)
            typer.echo(f"{told}  recall {score:.1f}", err=True)
            report(row["epoch"], score)

        return run(recipe, material, folder, device=device, on_epoch=heard).score or 0.0

    try:
        found = searched(
            lambda more: recipes.load(name, [*changes, *more]), trained, space, out, trials=trials
        )
    except KeyboardInterrupt:
        typer.echo("\nwordreel: stopped. Trials that are done are kept; the same command goes on.", err=True)
        raise typer.Exit(130) from None
    if as_json:
        print_json(vars(found))
        return
    typer.echo(f"best of {found.trials} trials ({found.stopped} stopped early): {found.score:.2f}")
    for key, value in found.overrides.items():
        typer.echo(f"  --set {key}={value}")
