"""`wordreel demo`: build and search a small library, from nothing."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wordreel.cli.console.common import JsonOption, print_json, printable
from wordreel.errors import WeightsError

if TYPE_CHECKING:
    from wordreel.library import Library


def demo(
    folder: Annotated[Path, typer.Option(help="Folder for the demo's files and library.")] = Path(".demo"),
    model: Annotated[
        str | None,
        typer.Option(
            help="Search with this model where it can be had: what `wordreel use` takes.",
            show_default="the default model",
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Download the model without asking.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Build a small library of real pictures and clips, and search it.

    Example: wordreel demo --folder /tmp/wordreel-demo
    Example: wordreel demo --model clip-vit-b-32
    """
    from wordreel.cli.find.hit_lines import lines, reasons
    from wordreel.cli.manage import add
    from wordreel.cli.setup.weights import fetch_all
    from wordreel.demo.collection import build_collection, download_samples
    from wordreel.embed.switch_model import check_name
    from wordreel.library import Library
    from wordreel.runtime.store import WeightStore

    def echo(line: str) -> None:
        if not as_json:
            typer.echo(line)

    if model is not None:
        check_name(WeightStore(), model)
    echo("Weights for the experts (once per machine):")
    fetch_all(quiet=as_json)
    echo("Sample pictures and clips:")
    samples = download_samples(folder / "samples")
    collection, library_folder = folder / "collection", folder / "library"
    for old in (collection, library_folder):
        if old.exists():
            shutil.rmtree(old)
    queries = build_collection(collection, samples)
    files = sorted(path.name for path in collection.iterdir())
    echo(f"  {len(files)} files in {collection}: {', '.join(files)}\n")

    add.run(Library(library_folder), [collection], as_json=as_json)
    library = Library(library_folder, create=False)
    if model is not None:
        _use(library, model, yes, as_json=as_json)
    results = []
    for query in queries:
        hits = library.search(query.text, limit=2)
        first = hits[0]
        correct = query.answered_by(first.path.name, first.start, first.end)
        results.append({"query": query.text, "file": first.path.name, "correct": correct})
        echo(f'\n{"✓" if correct else "✗"} "{query.text}"')
        for text in lines([replace(hit, path=Path(hit.path.name)) for hit in hits]):
            echo(f"  {text}")
        echo(f"        {reasons(first)}")
    if as_json:
        print_json(results)
        return
    right = sum(bool(result["correct"]) for result in results)
    echo(f"\n{right} of {len(queries)} queries rank the right file and moment first.")
    echo("Try your own:")
    echo(f'  wordreel search "a rabbit in a meadow" --library {printable(library_folder)}')
    echo('  wordreel add ~/Videos   and then   wordreel search "a man lifts a car"')


def _use(library: Library, model: str, yes: bool, as_json: bool) -> None:
    """Switch to a model; where it cannot be had, say why and go on with the default one."""
    from wordreel.cli.setup.use import use_with_progress

    try:
        used = use_with_progress(library, model, yes=yes, as_json=as_json)
    except WeightsError as error:
        typer.echo(f"wordreel: {error}; the default model answers instead.", err=True)
    else:
        if not as_json:
            typer.echo(f"{used.name} answers; {used.embedded} clips were embedded.")
