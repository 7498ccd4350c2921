"""Keeping a library safe: `wordreel verify`, `backup` and `restore`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wordreel.cli.console.common import (
    JsonOption,
    LibraryOption,
    OpenLibrary,
    count_of,
    counter,
    print_json,
    print_result,
    printable,
)

if TYPE_CHECKING:
    from wordreel.experts.base import Expert
    from wordreel.library import Library
    from wordreel.maintain.backup import BackupReport
    from wordreel.maintain.repair import LibraryProblem


def verify(
    library: OpenLibrary,
    repair: Annotated[bool, typer.Option("--repair", help="Repair what can be repaired.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Do not read every track.")] = False,
    deep: Annotated[
        bool,
        typer.Option(
            "--deep", help="Also compute a sample of embeddings and tracks again and compare; takes minutes."
        ),
    ] = False,
    sample: Annotated[int, typer.Option(min=1, help="With --deep: the files to run the experts on.")] = 3,
    as_json: JsonOption = False,
) -> None:
    """Check the integrity of a library and list every problem with its next step.

    Exits with status 1 if problems remain; files that moved or changed are notes, not problems.

    Example: wordreel verify --repair
    """
    from wordreel.maintain.repair import repair as repair_problems
    from wordreel.maintain.verify import verify as check

    if quick and deep:
        raise typer.BadParameter("--quick and --deep contradict each other: give one.")
    store = library.store
    recomputed = _recompute(library, sample) if deep else []
    before = problems = [*check(store, deep=not quick), *recomputed]
    if repair and problems:
        repair_problems(store, problems)
        problems = check(store, deep=not quick)
    if not quick:
        problems = [*problems, *_embeddings(library)]
    wrong = [problem for problem in problems if not problem.note]
    repaired = [problem for problem in before if problem not in problems]
    print_result(as_json, list(map(_json, problems)), _problem_lines(problems, repaired))
    if wrong:
        raise typer.Exit(1)


def _embeddings(opened: Library) -> list[LibraryProblem]:
    """Embeddings that cannot be right; none where the model cannot be opened, which `doctor` reports."""
    from wordreel.errors import WordreelError
    from wordreel.maintain.wrong_values import degenerate_embeddings

    try:
        return [problem for _, problem in degenerate_embeddings(opened.store, opened.model)]
    except WordreelError:
        return []


def _recompute(opened: Library, sample: int) -> list[LibraryProblem]:
    from wordreel.experts import registry
    from wordreel.maintain.wrong_values import recompute_embeddings, recompute_tracks
    from wordreel.media import Fence

    def load(name: str) -> Expert:
        return registry.load(name, opened.weights)

    report = counter("files computed again")
    with Fence() as fence:
        tracks = recompute_tracks(opened.store, load, fence, sample, on_progress=report)
    return [*recompute_embeddings(opened.store, opened.model), *tracks]


def _json(problem: LibraryProblem) -> dict[str, Any]:
    step = problem.next_step
    return {**asdict(problem), "next_step": step.for_command_line() if step else None}


def _problem_lines(problems: Sequence[LibraryProblem], repaired: Sequence[LibraryProblem]) -> Iterator[str]:
    for problem in problems:
        mark = "note" if problem.note else "problem"
        yield f"{mark}: {printable(problem.kind)}: {printable(problem.what)}"
    for step in dict.fromkeys(problem.next_step for problem in problems if problem.next_step):
        yield f"→ {step.for_command_line()}"
    count = sum(not problem.note for problem in problems)
    fixed = sum(not problem.note for problem in repaired)
    if fixed:
        yield f"{count_of(fixed, 'problem')} repaired."
    if any(problem.kind == "track" for problem in repaired):
        yield "→ extract the dropped tracks again: `wordreel add FOLDER`"
    yield f"{count_of(count, 'problem')}." if count else "No problems."


def backup(
    folder: Annotated[Path, typer.Argument(help="Where the copy goes: an empty folder, or its last backup.")],
    library: OpenLibrary,
    as_json: JsonOption = False,
) -> None:
    """Copy a library to another folder, also while it is in use.

    Only what is new since the last backup to the same folder is copied. Caches are left out; they are built
    again when they are needed. The videos themselves are not part of a library. Exits with status 1 if tracks
    of the library are damaged; they are named and not copied.

    Example: wordreel backup /media/usb/wordreel
    """
    report = library.backup(folder, counter("tracks checked"))
    _print_report(report, as_json, "copied to")


def restore(
    folder: Annotated[Path, typer.Argument(help="The folder of a backup.")],
    library: LibraryOption,
    as_json: JsonOption = False,
) -> None:
    """Bring a library back from a backup. The library's folder must be empty or not exist.

    Every track is checked. Exits with status 1 if some are damaged; `wordreel add` extracts those again.

    Example: wordreel restore /media/usb/wordreel -L ~/library
    """
    from wordreel.maintain.backup import restore as bring_back

    report = bring_back(folder, library, counter("tracks restored"))
    _print_report(report, as_json, "restored to")


def _print_report(report: BackupReport, as_json: bool, what: str) -> None:
    if as_json:
        print_json(asdict(report))
    else:
        size = report.bytes / 1e6
        tracks = count_of(report.copied, "track")
        typer.echo(f"{tracks} of {report.tracks} ({size:.1f} MB) {what} {printable(report.path)}.")
        for digest in report.damaged:
            typer.echo(f"problem: the track file {digest} is damaged or missing", err=True)
        if report.damaged:
            typer.echo("→ drop them and extract them again: `wordreel verify --repair`", err=True)
    if report.damaged:
        raise typer.Exit(1)
