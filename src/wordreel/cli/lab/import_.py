"""`wordreel import`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wordreel.cli.console.common import (
    JsonOption,
    LibraryOption,
    long_time,
    names_in,
    print_json,
    printable,
)
from wordreel.cli.console.show_progress import Shown, show_progress
from wordreel.progress import Progress

if TYPE_CHECKING:
    from wordreel.lab.datasets.trees.importer import ImportReport

MAX_PRINTED_FAILURES = 20  # --json lists all


def import_(
    folder: Annotated[Path, typer.Argument(help="The dataset's folder, as the published code lays it out.")],
    library: LibraryOption,
    kind: Annotated[
        str, typer.Option(help="The layout: ce, teachtext, mmt, clip4clip, moee, or auto to detect it.")
    ] = "auto",
    dataset: Annotated[
        str | None, typer.Option(help="The dataset's name; default: from the names of folders and files.")
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(help="Splits to import, separated by commas; default: all that are listed."),
    ] = None,
    experts: Annotated[
        str | None, typer.Option(help="Experts to import, separated by commas; default: all.")
    ] = None,
    videos: Annotated[
        Path | None, typer.Option(help="The folder of videos, for clip4clip; default: below FOLDER.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Import features and captions of published retrieval systems into the library.

    Nothing in the files is executed. Stop at any time; the same command resumes.

    Example: wordreel import data/MSVD --kind ce --split test
    """
    from wordreel.lab.datasets.trees import open_tree
    from wordreel.lab.datasets.trees.importer import import_tree
    from wordreel.library import Library

    tree = open_tree(folder, kind, dataset, videos)
    with show_progress(as_json, _describe) as on_progress:
        store = Library(library).store
        report = import_tree(store, tree, names_in(split), names_in(experts), on_progress)
    if as_json:
        missing = [{**asdict(file), "looked": str(file.looked)} for file in report.missing]
        print_json({**asdict(report), "missing": missing})
    else:
        _summarise(report)
    if report.failed and not (report.added or report.updated or report.skipped):
        raise typer.Exit(1)


def _describe(now: Progress) -> Shown:
    """Return the items and failures so far."""
    from wordreel.lab.datasets.trees.importer import ImportProgress

    failed = f", {now.failures} failed" if isinstance(now, ImportProgress) and now.failures else ""
    return Shown("Importing", now.done, now.total, f"{now.done}/{now.total} items{failed}")


def _summarise(report: ImportReport) -> None:
    """Print the counts, the missing files, and last the failures, where they are seen."""
    counts = {"added": report.added, "updated": report.updated, "already there": report.skipped}
    summary = ", ".join(f"{number} {name}" for name, number in counts.items() if number)
    typer.echo(
        f"{report.dataset} ({report.kind}): {summary or 'nothing to import'}, in {long_time(report.seconds)}"
    )
    for name, (present, absent) in report.experts.items():
        typer.echo(f"  {name:<36} {present} items" + (f", absent in {absent}" if absent else ""))
    for split, number in report.captions.items():
        typer.echo(f"  captions of {split:<24} {number}")
    for missing in report.missing:
        typer.echo(
            f"Missing: {missing.what} ({printable(missing.looked)}). Works without it: {missing.without}."
        )
    if report.failed:
        typer.echo(f"{len(report.failed)} could not be imported:")
        for path, reason in report.failed[:MAX_PRINTED_FAILURES]:
            typer.echo(f"  {printable(path)}: {printable(reason)}")
        if len(report.failed) > MAX_PRINTED_FAILURES:
            typer.echo(f"  … and {len(report.failed) - MAX_PRINTED_FAILURES} more; --json lists all")
