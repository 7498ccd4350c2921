"""`wordreel results`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wordreel.cli.console.common import printable


def results(
    folder: Annotated[Path, typer.Argument(help="Where `evaluate --out` wrote results.")] = Path("results"),
    write: Annotated[
        bool, typer.Option("--write", help="Put the tables between the marks in FOLDER/README.md.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Fail if the tables in FOLDER/README.md are not these.")
    ] = False,
) -> None:
    """Make the tables of a folder of results from its files, so that no number is ever typed.

    Example: wordreel results results --write
    """
    from wordreel.lab.reports.results import replace_tables, tables

    written = tables(folder)
    if not write and not check:
        typer.echo(written, nl=False)
        return
    readme = folder / "README.md"
    old = readme.read_text(encoding="utf-8") if readme.is_file() else ""
    new = replace_tables(old, written)
    if check and new != old:
        typer.echo(
            f"{printable(readme)} is not what the results say; run: wordreel results --write", err=True
        )
        raise typer.Exit(1)
    if write:
        readme.write_text(new, encoding="utf-8")
