"""`wordreel experts`."""

from __future__ import annotations

import typer

from wordreel.cli.console.common import JsonOption, print_json


def experts(as_json: JsonOption = False) -> None:
    """List all experts: what they process, whether their weights are installed, and how to get them.

    Example: wordreel experts --json
    """
    from wordreel.experts import registry
    from wordreel.media.types import FrameNeed
    from wordreel.runtime import weight_table as weights
    from wordreel.runtime.store import WeightStore

    store = WeightStore()
    rows = []
    for name, card in registry.cards(store).items():
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
                "how": "; ".join(weights.find(name).next_step().for_command_line() for name in missing),
                "note": card.note,
            }
        )
    if as_json:
        print_json(rows)
        return
    for row in rows:
        state = "installed" if row["installed"] else "missing"
        used = "" if row["default"] else ", only on request (`wordreel add --experts`)"
        typer.echo(f"{row['name']} ({row['modality']}): {row['title']}")
        typer.echo(f"    {state}{used}; {row['dimension']}-d, {row['sampling']}, {row['licence']}")
        if row["how"]:
            typer.echo(f"    → {row['how']}")
