"""`wordreel add`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wordreel.cli.console.common import (
    JsonOption,
    LibraryOption,
    OnOption,
    count_of,
    long_time,
    names_in,
    print_json,
    printable,
)
from wordreel.cli.console.show_progress import Shown, show_progress

if TYPE_CHECKING:
    from wordreel.catalogue.passes import Pass
    from wordreel.ingest.add_report import AddProgress, AddReport
    from wordreel.library import Library
    from wordreel.progress import Progress


def add(
    library: LibraryOption,
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Files and folders; folders are walked recursively. None with --thorough: what waits for it."
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Only the quick pass: key frames, text on them, short speech.")
    ] = False,
    thorough: Annotated[
        bool, typer.Option("--thorough", help="Only the thorough pass: every expert on everything.")
    ] = False,
    experts: Annotated[
        str | None,
        typer.Option(help="Experts to run, separated by commas; `wordreel experts` lists them."),
    ] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Files processed at once.")] = None,
    retry_failed: Annotated[bool, typer.Option(help="Also try unchanged files that failed before.")] = False,
    on: OnOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add videos, pictures and sounds to the library, or update it after they changed.

    A quick pass over key frames lets you find every new file within minutes; the thorough pass follows, first
    on what searches returned, then on the newest. Unchanged files are skipped. Stop at any time; the same
    command resumes.

    Examples:
      wordreel add ~/Videos ~/Pictures/trip.mp4

      wordreel add ~/Videos --quick

      wordreel add --thorough
    """
    from wordreel.cli.setup.weights import fetch_missing
    from wordreel.library import Library

    if not paths and (quick or not thorough):
        raise typer.BadParameter("name files or folders, or give --thorough alone for what waits for it")
    names = names_in(experts)
    fetch_missing(names, quiet=as_json)
    chosen: dict[Pass, bool] = {"quick": quick, "thorough": thorough}
    passes = [name for name, wanted in chosen.items() if wanted]
    options = {"experts": names, "jobs": jobs, "retry_failed": retry_failed, "on": on}
    report = run(Library(library), paths or (), as_json, passes=passes or None, **options)
    if as_json:
        print_json(report)
    if report.failed and not (report.added or report.skipped or report.updated or report.moved):
        raise typer.Exit(1)


def run(library: Library, paths: Sequence[Path], as_json: bool = False, **options: Any) -> AddReport:
    """Add with progress and a summary at the end; `as_json` is for programs, without a summary."""
    with (
        show_progress(as_json, describe) as on_progress,
        redirect_stdout(sys.stderr),  # Ray prints that a worker died; standard output is for the report
    ):
        report = library.add(*paths, on_progress=on_progress, **options)
    if not as_json:
        summarise(report, library)
    return report


def describe(now: Progress) -> Shown:
    """Describe files by their bytes, clips by their number."""
    from wordreel.ingest.add_report import AddProgress

    if isinstance(now, AddProgress):
        heading = "Quick look" if now.analysis == "quick" else "Adding"
        return Shown(heading, now.bytes_done, now.bytes_total, files_note(now))
    return Shown("Embedding", now.done, now.total, f"{now.done}/{now.total} clips")


def files_note(now: AddProgress) -> str:
    """Say how many files are done; from the first one on, also the rate and the time left."""
    parts = [f"{now.done}/{now.total} files"]
    if now.done:
        parts.append(f"{now.files_per_minute:.0f}/min")
    if now.done and now.media_seconds:
        parts.append(f"{now.times_real_time:.1f}× real time")
    if now.done and now.seconds_left is not None:
        parts.append(f"{long_time(now.seconds_left)} left")
    if now.failures:
        parts.append(f"{now.failures} failed")
    return ", ".join(parts)


def summarise(report: AddReport, library: Library) -> None:
    """Print what happened in a few lines, failures last, where they are seen."""
    counts = {
        "added": len(report.added),
        "changed": len(report.changed),
        "updated": len(report.updated),
        "moved": len(report.moved),
        "copies of known files": len(report.duplicates),
        "unchanged": report.skipped,
        "not media": report.ignored,
        "gone from disk": len(report.gone),
    }
    summary = ", ".join(f"{number} {name}" for name, number in counts.items() if number) or "nothing to add"
    rate = ""
    if report.media_seconds and report.seconds:
        rate = f" ({report.media_seconds / report.seconds:.1f}× real time)"
    typer.echo(f"{summary}; {long_time(report.media_seconds)} of media in {long_time(report.seconds)}{rate}")
    if report.quick is not None and report.quick.files and report.quick.seconds:
        quick = report.quick
        typer.echo(
            f"Quick look: {count_of(quick.files, 'file')} to be found after {long_time(quick.seconds)} "
            f"({quick.media_seconds / quick.seconds:.0f}× real time)"
        )
    if report.waiting:
        typer.echo(f"{count_of(report.waiting, 'file')} known by key frames alone.")
        typer.echo("→ run the thorough pass: `wordreel add --thorough`")
    if report.gone:
        typer.echo("→ if they moved, add their new folder first; then: `wordreel remove --missing`")
    if report.failed:
        typer.echo(f"{len(report.failed)} could not be added:")
        for path, reason in report.failed:
            typer.echo(f"  {printable(path)}: {printable(reason)}")
    if report.still_failed:
        typer.echo(f"{len(report.still_failed)} failed before and have not changed.")
        typer.echo("→ try them again with `--retry-failed`")
    if report.degenerate:
        typer.echo(f"{len(report.degenerate)} results were stored that cannot be right:")
        for path, expert, what in report.degenerate:
            of = f"{printable(path)}: " if path else ""
            typer.echo(f"  {of}{printable(expert)}: {printable(what)}")
        typer.echo("→ check the weights and the embeddings: `wordreel doctor`")
    typer.echo(f"Library: {printable(library.path)}")
