"""`wordreel import`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wordreel.cli.common import (
    JsonOption,
    LibraryOption,
    long_time,
    names_in,
    print_json,
    printable,
    progress_bars,
)

if TYPE_CHECKING:
    from wordreel.datasets.trees.bring_report import ImportReport

MOST_FAILURES = 20  # printed; --json has all


def import_(
    folder: Annotated[Path, typer.Argument(help="A dataset's folder, as the published code has it.")],
    library: LibraryOption,
    kind: Annotated[
        str, typer.Option(help="The layout: ce, teachtext, mmt, clip4clip, moee, or auto to tell it.")
    ] = "auto",
    dataset: Annotated[
        str | None, typer.Option(help="The dataset's name, where folders and files do not tell it.")
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(help="Only these splits, separated by commas; all that are listed otherwise."),
    ] = None,
    experts: Annotated[
        str | None, typer.Option(help="Only these experts, separated by commas; all otherwise.")
    ] = None,
    videos: Annotated[
        Path | None, typer.Option(help="Where the videos are, for clip4clip; below FOLDER otherwise.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Bring the features and captions of published retrieval systems into the library.

    Nothing in the files is executed. Stop it whenever you like: the same command goes on.

    Example: wordreel import data/MSVD --kind ce --split test
    """
    from wordreel.api import Library
    from wordreel.datasets.trees import open_tree

    tree = open_tree(folder, kind, dataset, videos)
    report = run(Library(library).store, tree, names_in(split), names_in(experts), quiet=as_json)
    if as_json:
        print_json(_plain(report))
    else:
        summarise(report)
    if report.failed and not (report.added or report.updated or report.skipped):
        raise typer.Exit(1)


def run(
    store: Any, tree: Any, splits: list[str] | None, experts: list[str] | None, quiet: bool
) -> ImportReport:
    """Import with a bar of progress."""
    from wordreel.datasets.trees.bring import bring

    with progress_bars(quiet) as bars:
        items = bars.add_task("Importing", total=None, note="reading")

        def moved(done: int, total: int, failures: int) -> None:
            failed = f", {failures} failed" if failures else ""
            bars.update(items, completed=done, total=total, note=f"{done}/{total} items{failed}")

        return bring(store, tree, splits, experts, moved)


def summarise(report: ImportReport) -> None:
    """What came, what was not there to come, and what failed last, where it is seen."""
    counts = {"added": report.added, "updated": report.updated, "there already": report.skipped}
    said = ", ".join(f"{number} {name}" for name, number in counts.items() if number) or "nothing to import"
    typer.echo(f"{report.dataset} ({report.kind}): {said}, in {long_time(report.seconds)}")
    for name, (present, absent) in report.experts.items():
        typer.echo(f"  {name:<36} {present} items" + (f", absent in {absent}" if absent else ""))
    for split, number in report.captions.items():
        typer.echo(f"  captions of {split:<24} {number}")
    for missing in report.missing:
        typer.echo(
            f"Not here: {missing.what} ({printable(missing.looked)}). Works without: {missing.without}."
        )
    if report.failed:
        typer.echo(f"{len(report.failed)} could not be imported:")
        for path, reason in report.failed[:MOST_FAILURES]:
            typer.echo(f"  {printable(path)}: {printable(reason)}")
        if len(report.failed) > MOST_FAILURES:
            typer.echo(f"  … and {len(report.failed) - MOST_FAILURES} more; --json lists all")


def _plain(report: ImportReport) -> dict[str, Any]:
    facts = asdict(report)
    facts["missing"] = [{**missing, "looked": str(missing["looked"])} for missing in facts["missing"]]
    return facts
