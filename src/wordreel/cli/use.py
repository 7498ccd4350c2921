"""`wordreel use`: which model answers searches."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from wordreel.cli.common import JsonOption, LibraryOption, print_json, printable
from wordreel.progress import Progress

if TYPE_CHECKING:
    from wordreel.api import Library


def use(
    library: LibraryOption,
    model: Annotated[
        str | None,
        typer.Argument(
            help="reel (the default), bridge (needs no training), a folder with a trained checkpoint, or a "
            "model used before.",
            show_default="say which is in use",
        ),
    ] = None,
    list_all: Annotated[bool, typer.Option("--list", help="List the models that this library has.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Say which model answers searches, or let another one do it.

    The library is embedded anew from what the experts saw, no video is decoded again; the model is switched
    when that is done. A checkpoint is copied into the library. Switching back takes no time.

    Example: wordreel use runs/mmt-msvd
    """
    from wordreel.api import Library

    opened = Library(library, create=False)
    if model is not None and list_all:
        raise typer.BadParameter("name a model, or give --list")
    if model is None:
        _tell(opened, list_all, as_json)
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as ProgressBars

    columns = (TextColumn("Embedding"), BarColumn(), TextColumn("{task.completed}/{task.total} clips"))
    bars = ProgressBars(*columns, TimeRemainingColumn(), console=Console(stderr=True, quiet=as_json))
    task = bars.add_task("", total=None)

    def embedded(now: Progress) -> None:
        bars.start()
        bars.update(task, completed=now.done, total=now.total)

    try:
        used = opened.use(model, embedded)
    except KeyboardInterrupt:
        bars.stop()
        said = "wordreel: stopped. The model stays that was in use; the same command goes on from here."
        typer.echo(said, err=True)
        raise typer.Exit(130) from None
    finally:
        if bars.live.is_started:  # a bar that never began would leave an empty line
            bars.stop()
    if as_json:
        print_json(asdict(used))
        return
    for note in used.notes:
        typer.echo(f"Note: {printable(note)}", err=True)
    typer.echo(f"{printable(used.name)} ({used.fingerprint}) is in use; {used.embedded} clips were embedded.")


def _tell(opened: Library, every: bool, as_json: bool) -> None:
    rows = opened.models()
    if as_json:
        print_json([asdict(row) for row in rows])
        return
    for row in rows:
        if not (every or row.in_use or row.embedded):
            continue
        state = "in use" if row.in_use else ""
        name = printable(row.name) or "(a model no longer here)"
        typer.echo(
            f"{name:<24} {row.fingerprint:<16}  {row.embedded}/{row.clips} clips embedded  {state}".rstrip()
        )
