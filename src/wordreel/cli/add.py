"""`wordreel add`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
    from wordreel.api import Library
    from wordreel.library.add_report import AddProgress, AddReport


def add(
    paths: Annotated[
        list[Path], typer.Argument(help="Files and folders; folders are searched to the bottom.")
    ],
    library: LibraryOption,
    experts: Annotated[
        str | None,
        typer.Option(help="Who looks at the media, separated by commas; `wordreel experts` lists them."),
    ] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Files worked on at once.")] = None,
    retry_failed: Annotated[bool, typer.Option(help="Try files again that failed before.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Add videos, pictures and sounds to the library, or bring it up to date with them.

    Files that have not changed are skipped. Stop it whenever you like: the same command goes on.

    Example: wordreel add ~/Videos ~/Pictures/trip.mp4
    """
    from wordreel.api import Library
    from wordreel.cli.weights import fetch_missing

    names = names_in(experts)
    fetch_missing(names, quiet=as_json)
    report = run(Library(library), paths, names, jobs, retry_failed, quiet=as_json)
    if as_json:
        print_json(asdict(report))
    if report.failed and not (report.added or report.skipped or report.updated or report.moved):
        raise typer.Exit(1)


def run(
    library: Library,
    paths: Sequence[Path],
    experts: list[str] | None = None,
    jobs: int | None = None,
    retry_failed: bool = False,
    quiet: bool = False,
) -> AddReport:
    """Add with a bar of progress and a summary at the end."""
    with progress_bars(quiet) as bars:
        files = bars.add_task("Looking", total=None, note="")
        clips = bars.add_task("Embedding", total=None, note="", visible=False)

        def looked(now: AddProgress) -> None:
            left = f", {long_time(now.seconds_left)} left" if now.seconds_left is not None else ""
            failed = f", {now.failures} failed" if now.failures else ""
            note = (
                f"{now.done}/{now.total} files, {now.files_per_minute:.0f}/min, "
                f"{now.times_real_time:.1f}× real time{left}{failed}"
            )
            bars.update(files, completed=now.bytes_done, total=now.bytes_total, note=note)

        def embedded(done: int, total: int) -> None:
            bars.update(clips, completed=done, total=total, note=f"{done}/{total} clips", visible=True)

        report = library.add(
            *paths, experts=experts, jobs=jobs, retry_failed=retry_failed, progress=looked, embedding=embedded
        )
    if not quiet:
        summarise(report, library)
    return report


def summarise(report: AddReport, library: Library) -> None:
    """What happened, in a few lines, failures last where they are seen."""
    counts = {
        "added": len(report.added),
        "changed": len(report.changed),
        "updated": len(report.updated),
        "moved": len(report.moved),
        "copies of known files": len(report.duplicates),
        "unchanged": report.skipped,
        "not media": report.ignored,
        "gone from the disk": len(report.gone),
    }
    said = ", ".join(f"{number} {name}" for name, number in counts.items() if number) or "nothing to add"
    rate = (
        f" ({report.media_seconds / report.seconds:.1f}× real time)"
        if report.media_seconds and report.seconds
        else ""
    )
    typer.echo(f"{said}; {long_time(report.media_seconds)} of media in {long_time(report.seconds)}{rate}")
    if report.gone:
        typer.echo("  `wordreel remove --missing` forgets the files that are gone.")
    if report.failed:
        typer.echo(f"{len(report.failed)} could not be added:")
        for path, reason in report.failed:
            typer.echo(f"  {printable(path)}: {printable(reason)}")
    if report.still_failed:
        typer.echo(
            f"{len(report.still_failed)} failed before and have not changed (--retry-failed tries again)."
        )
    typer.echo(f"Library: {printable(library.path)}")
