"""`wordreel verify`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wordreel.cli.console.common import JsonOption, LibraryOption, counter, print_json, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wordreel.experts.base import Expert
    from wordreel.library import Library
    from wordreel.maintain.library_problem import LibraryProblem


def verify(
    library: LibraryOption,
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
    from wordreel.library import Library
    from wordreel.maintain.repair import repair as repair_problems
    from wordreel.maintain.verify import verify as check

    if quick and deep:
        raise typer.BadParameter("--quick and --deep contradict each other: give one.")
    opened = Library(library, create=False)
    store = opened.store
    recomputed = _recompute(opened, sample) if deep else []
    before = problems = [*check(store, deep=not quick), *recomputed]
    if repair and problems:
        repair_problems(store, problems)
        problems = check(store, deep=not quick)
    if not quick:
        problems = [*problems, *_embeddings(opened)]
    wrong = [problem for problem in problems if not problem.note]
    if as_json:
        print_json([_json(problem) for problem in problems])
    else:
        _print(problems, repaired=[problem for problem in before if problem not in problems])
    if wrong:
        raise typer.Exit(1)


def _embeddings(opened: Library) -> list[LibraryProblem]:
    """Embeddings that cannot be right; none where the model cannot be opened, which `doctor` reports."""
    from wordreel.errors import WordreelError
    from wordreel.maintain.degenerate_embeddings import degenerate_embeddings

    try:
        return [problem for _, problem in degenerate_embeddings(opened.store, opened.model)]
    except WordreelError:
        return []


def _recompute(opened: Library, sample: int) -> list[LibraryProblem]:
    from wordreel.experts import registry
    from wordreel.maintain.recompute import recompute_embeddings, recompute_tracks
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


def _print(problems: Sequence[LibraryProblem], repaired: Sequence[LibraryProblem]) -> None:
    for problem in problems:
        mark = "note" if problem.note else "problem"
        typer.echo(f"{mark}: {printable(problem.kind)}: {printable(problem.what)}")
    for step in dict.fromkeys(problem.next_step for problem in problems if problem.next_step):
        typer.echo(f"→ {step.for_command_line()}")
    count = sum(not problem.note for problem in problems)
    fixed = sum(not problem.note for problem in repaired)
    if fixed:
        typer.echo(f"{fixed} {'problem' if fixed == 1 else 'problems'} repaired.")
    if any(problem.kind == "track" for problem in repaired):
        typer.echo("→ extract the dropped tracks again: `wordreel add FOLDER`")
    typer.echo("No problems." if not count else f"{count} {'problem' if count == 1 else 'problems'}.")
