"""`wordreel models`: the published models that can be trained here, their sizes, and recipes for them."""

from __future__ import annotations

from typing import Annotated

import typer

from wordreel.cli.common import JsonOption, print_json


def models(
    parts: Annotated[bool, typer.Option("--parts", help="Show the parts that make up each size.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List the trainable models and the recipes that train them, with experts and parameter counts.

    Example: wordreel models --json
    """
    from wordreel.models import parameter_counts
    from wordreel.models.registry import MODELS
    from wordreel.training import recipe as recipes

    rows = []
    for name, entry in MODELS.items():
        config = entry.make()
        made = parameter_counts.parameters_by_part(config)
        rows.append(
            {
                "kind": "model",
                "name": name,
                "title": entry.title,
                "paper": entry.paper,
                "experts": list(config.names),
                "parameters": sum(made.values()),
                "parts": {part: count for part, count in made.items() if count},
            }
        )
    for name in recipes.names():
        found = recipes.load(name)
        made = parameter_counts.parameters_by_part(found.model)
        rows.append(
            {
                "kind": "recipe",
                "name": name,
                "title": found.title,
                "paper": found.paper,
                "experts": list(found.model.names),
                "parameters": sum(made.values()),
                "parts": {part: count for part, count in made.items() if count},
            }
        )
    if as_json:
        print_json(rows)
        return
    wide = max(len(str(row["name"])) for row in rows)
    for kind, title in (("model", "models"), ("recipe", "recipes: wordreel train RECIPE")):
        typer.echo(title)
        for row in (row for row in rows if row["kind"] == kind):
            paper = f" ({row['paper']})" if row["paper"] else ""
            typer.echo(f"  {row['name']:<{wide}}  {row['parameters']:>13,}  {row['title']}{paper}")
            if parts and isinstance(row["parts"], dict):
                for part, count in row["parts"].items():
                    typer.echo(f"  {'':<{wide}}  {count:>13,}    {part}")
