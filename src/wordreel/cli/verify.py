"""`wordreel verify`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from wordreel.cli.common import JsonOption, LibraryOption, print_json, printable


def verify(
    library: LibraryOption,
    repair: Annotated[bool, typer.Option("--repair", help="Mend what can be mended.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Do not read every track.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Check everything that must hold in a library, and say what does not.

    Example: wordreel verify --repair
    """
    from wordreel.api import Library
    from wordreel.library.repair import repair as mend
    from wordreel.library.verify import verify as check

    store = Library(library, create=False).store
    problems = check(store, deep=not quick)
    if repair and problems:
        mend(store, problems)
        problems = check(store, deep=not quick)
    wrong = [problem for problem in problems if not problem.note]
    if as_json:
        print_json([asdict(problem) for problem in problems])
    else:
        for problem in problems:
            mark = "note" if problem.note else "wrong"
            hint = "  (--repair mends it)" if problem.repairable and not repair else ""
            typer.echo(f"{mark}: {printable(problem.kind)}: {printable(problem.what)}{hint}")
        typer.echo("Everything holds." if not wrong else f"{len(wrong)} things are wrong.")
    if wrong:
        raise typer.Exit(1)
