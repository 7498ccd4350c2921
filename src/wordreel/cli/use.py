"""`wordreel use`: which model answers searches."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from wordreel.cli.common import JsonOption, LibraryOption, print_json, printable
from wordreel.progress import Progress

if TYPE_CHECKING:
    from wordreel.api import Library
    from wordreel.models.convert.checkpoint_file import ConversionOptions
    from wordreel.search.use import UseResult


def use(
    library: LibraryOption,
    model: Annotated[
        str | None,
        typer.Argument(
            help="reel (the default), bridge (needs no training), a folder with a trained checkpoint, a "
            "published checkpoint of CE, MoEE or MMT (.pth), or a model used before.",
            show_default="show which is in use",
        ),
    ] = None,
    text: Annotated[
        Path | None,
        typer.Option(
            help="Of a published checkpoint: what encodes new text. CE and MoEE: a file of word vectors, or "
            "the folder of a GPT; MMT: the vocab.txt of bert-base-cased.",
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            help="Of a published checkpoint: the config.json of its training run.",
            show_default="the one inside or beside it",
        ),
    ] = None,
    mode: Annotated[
        Literal["released", "paper"],
        typer.Option(
            help="Of a published checkpoint: compute as the released code does, or as the paper says, which "
            "gives other similarities with the same weights.",
        ),
    ] = "released",
    moee_order: Annotated[
        Literal["ordered", "unordered"],
        typer.Option(
            help="Of a checkpoint of MoEE's own code: ordered if it was trained under Python 3.6 or later.",
        ),
    ] = "ordered",
    name: Annotated[
        str | None, typer.Option(help="Of a published checkpoint: what to call the model.")
    ] = None,
    list_all: Annotated[bool, typer.Option("--list", help="List the models that this library has.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show which model answers searches, or use another one.

    The library is embedded from its stored features, no video is decoded again; the model is switched when
    that is done. A checkpoint is copied into the library. Switching back takes no time.

    Example: wordreel use runs/mmt-msvd
    Example: wordreel use trained_model.pth --text GoogleNews-vectors-negative300.bin
    """
    from wordreel.api import Library
    from wordreel.models.convert.checkpoint_file import ConversionOptions

    opened = Library(library, create=False)
    if model is not None and list_all:
        raise typer.BadParameter("name a model, or give --list")
    conversion = ConversionOptions(config, mode, name, text, moee_order)
    if conversion != ConversionOptions() and not (model and Path(model).expanduser().is_file()):
        raise typer.BadParameter(
            "--text, --config, --mode, --moee-order and --name are for a published checkpoint: name its file"
        )
    if model is None:
        _print_models(opened, list_all, as_json)
        return
    used = _use_with_progress(opened, model, conversion, quiet=as_json)
    if as_json:
        print_json(asdict(used))
        return
    for note in used.notes:
        typer.echo(f"Note: {printable(note)}", err=True)
    typer.echo(f"{printable(used.name)} ({used.fingerprint}) is in use; {used.embedded} clips were embedded.")


def _use_with_progress(opened: Library, model: str, conversion: ConversionOptions, quiet: bool) -> UseResult:
    """Switch the model, with a progress bar on standard error; Ctrl-C leaves the previous one in use."""
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as ProgressBars

    columns = (TextColumn("Embedding"), BarColumn(), TextColumn("{task.completed}/{task.total} clips"))
    bars = ProgressBars(*columns, TimeRemainingColumn(), console=Console(stderr=True, quiet=quiet))
    task = bars.add_task("", total=None)

    def on_progress(progress: Progress) -> None:
        bars.start()
        bars.update(task, completed=progress.done, total=progress.total)

    try:
        return opened.use(model, on_progress, conversion=conversion)
    except KeyboardInterrupt:
        bars.stop()
        message = "wordreel: stopped. The previous model stays in use; the same command resumes."
        typer.echo(message, err=True)
        raise typer.Exit(130) from None
    finally:
        if bars.live.is_started:  # a bar that never started would leave an empty line
            bars.stop()


def _print_models(opened: Library, every: bool, as_json: bool) -> None:
    rows = opened.models()
    if as_json:
        print_json([asdict(row) for row in rows])
        return
    for row in rows:
        if not (every or row.in_use or row.embedded):
            continue
        state = "in use" if row.in_use else ""
        name = printable(row.name) or "(a model that is gone)"
        typer.echo(
            f"{name:<24} {row.fingerprint:<16}  {row.embedded}/{row.clips} clips embedded  {state}".rstrip()
        )
