"""`wordreel experts`: what can be seen, heard and read here, and what is missing."""

from __future__ import annotations

import typer

from wordreel.cli.common import JsonOption, print_json


def experts(as_json: JsonOption = False) -> None:
    """List all experts: what they look at, whether their weights are here, and how to get them.

    Example: wordreel experts --json
    """
    from wordreel.experts import registry
    from wordreel.media.types import FrameNeed
    from wordreel.weights.lookup import how, recipe
    from wordreel.weights.store import WeightStore

    store = WeightStore()
    rows = []
    for name, card in registry.cards().items():
        missing = [weight for weight in card.weights if not store.has(weight)]
        need = card.need
        rows.append(
            {
                "name": name,
                "modality": card.modality,
                "title": card.title,
                "dimension": card.dim,
                "sampling": f"{need.rate:g} frames/s" if isinstance(need, FrameNeed) else f"{need.rate} Hz",
                "licence": card.licence,
                "default": card.default,
                "installed": not missing,
                "how": "; ".join(how(recipe(weight)) for weight in missing),
                "note": card.note,
            }
        )
    if as_json:
        print_json(rows)
        return
    for row in rows:
        state = "installed" if row["installed"] else "missing"
        used = "" if row["default"] else ", not used unless asked for"
        typer.echo(f"{row['name']} ({row['modality']}): {row['title']}")
        typer.echo(f"    {state}{used}; {row['dimension']}-d, {row['sampling']}, {row['licence']}")
        if row["how"]:
            typer.echo(f"    get it: {row['how']}")
