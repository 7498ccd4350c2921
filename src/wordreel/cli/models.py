"""`wordreel models`: the published models that can be trained here, and their sizes."""

from __future__ import annotations

from typing import Annotated

import typer

from wordreel.cli.common import JsonOption, print_json


def models(
    parts: Annotated[bool, typer.Option("--parts", help="Show the parts that make up each size.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List the trainable models with their experts and parameter counts.

    Example: wordreel models --json
    """
    from wordreel.models import counts
    from wordreel.models.registry import MODELS

    rows = []
    for name, entry in MODELS.items():
        config = entry.make()
        made = counts.parts(config)
        rows.append(
            {
                "name": name,
                "title": entry.title,
                "paper": entry.paper,
                "experts": list(config.names),
                "parameters": sum(made.values()),
                "parts": {part: count for part, count in made.items() if count},
            }
        )
    if as_json:
        print_json(rows)
        return
    wide = max(len(str(row["name"])) for row in rows)
    for row in rows:
        typer.echo(f"{row['name']:<{wide}}  {row['parameters']:>13,}  {row['title']} ({row['paper']})")
        if parts and isinstance(row["parts"], dict):
            for part, count in row["parts"].items():
                typer.echo(f"{'':<{wide}}  {count:>13,}    {part}")
