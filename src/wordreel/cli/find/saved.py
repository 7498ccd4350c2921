"""`wordreel saved …`: searches under a name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wordreel.cli.console.common import (
    JsonOption,
    OpenLibrary,
    VerbGroup,
    count_of,
    print_json,
    print_result,
    printable,
    read_json_list,
)
from wordreel.cli.console.option_groups import query_options
from wordreel.search.query import QueryArguments

if TYPE_CHECKING:
    from wordreel.search.saved import SavedSearch

app = VerbGroup("Save searches with their filters under a name, and run them again.", no_args_is_help=True)

NameArgument = Annotated[str, typer.Argument(help="The name of a saved search.")]


@app.command("add")
@query_options(leave_out=("like", "second", "image", "limit", "offset", "compare"))
def add(
    name: NameArgument,
    words: Annotated[str, typer.Argument(help="What to look for; tag: and person: are understood.")],
    library: OpenLibrary,
    query: QueryArguments,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a saved search of that name.")
    ] = False,
) -> None:
    """Save a search under a name.

    Example: wordreel saved add "beach dogs" "a dog runs" --tag beach --after 2024-01-01
    """
    from wordreel.search.query import Query

    saved = library.saved.save(name, Query.build(words, **query), replace=overwrite)
    typer.echo(_line(saved))


@app.command("list")
def list_(library: OpenLibrary, as_json: JsonOption = False) -> None:
    """List saved searches.

    Example: wordreel saved list
    """
    found = library.saved.list()
    count = count_of(len(found), "saved search") if len(found) == 1 else f"{len(found)} saved searches"
    print_result(as_json, library.saved.export(), [*map(_line, found), count])


@app.command("run")
def run(
    name: NameArgument,
    library: OpenLibrary,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many videos to show.")] = 10,
    as_json: JsonOption = False,
) -> None:
    """Run a saved search.

    Example: wordreel saved run "beach dogs"
    """
    from wordreel.cli.find.search import as_plain, print_found

    query = replace(library.saved.get(name).query, limit=limit)
    results = library.search(query)
    if as_json:
        print_json(as_plain(results))
    else:
        print_found(library, query, results)


@app.command("remove")
def remove(name: NameArgument, library: OpenLibrary) -> None:
    """Remove a saved search.

    Example: wordreel saved remove "beach dogs"
    """
    library.saved.remove(name)
    typer.echo(f"removed {printable(name)}")


@app.command("export")
def export(library: OpenLibrary) -> None:
    """Print all saved searches as JSON.

    Example: wordreel saved export > saved.json
    """
    print_json(library.saved.export())


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="What `saved export` printed.")],
    library: OpenLibrary,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace saved searches of the same names.")
    ] = False,
) -> None:
    """Save exported searches, all or none of them.

    Example: wordreel saved import saved.json
    """
    rows: list[dict[str, Any]] = read_json_list(file)
    count = library.saved.import_(rows, replace=overwrite)
    typer.echo(f"{count} saved")


def _line(saved: SavedSearch) -> str:
    from wordreel.search.saved import query_to_json

    values = query_to_json(saved.query)
    words = f"“{values.pop('text', '')}”" if "text" in values else ""
    more = ", ".join(f"{name} {value}" for name, value in values.items())
    return printable("  ".join(part for part in (f"{saved.name}:", words, more) if part))
