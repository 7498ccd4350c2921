"""`wordreel demo`: the main job on a small collection, from nothing."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer

from wordreel.cli.common import printable


def demo(
    folder: Annotated[Path, typer.Option(help="Where the demo's files and library go.")] = Path(".demo"),
) -> None:
    """Build a small library from real pictures and clips, and search it.

    Example: wordreel demo --folder /tmp/wordreel-demo
    """
    from wordreel.api import Library
    from wordreel.cli import add, search
    from wordreel.cli.weights import fetch_all
    from wordreel.demo import reel, samples

    typer.echo("Weights for the experts (once per machine):")
    fetch_all()
    typer.echo("Sample pictures and clips:")
    taken = samples.bring(folder / "samples")
    collection, place = folder / "collection", folder / "library"
    for old in (collection, place):
        if old.exists():
            shutil.rmtree(old)
    queries = reel.build(collection, taken)
    files = sorted(path.name for path in collection.iterdir())
    typer.echo(f"  {len(files)} files in {collection}: {', '.join(files)}\n")

    add.run(Library(place), [collection])
    library = Library(place, create=False)
    right = 0
    for query in queries:
        hits = library.search(query.words, limit=2)
        first = hits[0]
        good = query.answered_by(Path(first.path).name, first.start, first.end)
        right += good
        typer.echo(f'\n{"✓" if good else "✗"} "{query.words}"')
        for hit in hits:
            typer.echo("  " + search.line(hit).replace(f"{collection.resolve()}/", ""))
        typer.echo(f"        {search.reasons(first)}")
    typer.echo(f"\n{right} of {len(queries)} queries have the right file and moment first.")
    typer.echo("Now yours:")
    typer.echo(f'  wordreel search "a rabbit in a meadow" --library {printable(place)}')
    typer.echo('  wordreel add ~/Videos   and then   wordreel search "a man lifts a car"')
