"""`wordreel doctor`."""

from __future__ import annotations

from typing import Any

import typer

from wordreel.cli.console.common import JsonOption, LibraryOption, print_json, printable


def doctor(library: LibraryOption, as_json: JsonOption = False) -> None:
    """Check the environment, the weights, the experts and the library, and say what to do about problems.

    Example: wordreel doctor
    """
    from wordreel.doctor import run_checks

    rows: list[dict[str, Any]] = []
    for finding in run_checks(library):
        step = finding.next_step.for_command_line() if finding.next_step else ""
        rows.append({"state": finding.state, "what": finding.what, "detail": finding.detail, "advice": step})
        if not as_json:
            typer.echo(f"{finding.state:<5}  {finding.what}: {printable(finding.detail)}")
            if step:
                typer.echo(f"       → {printable(step)}")
    if as_json:
        print_json(rows)
    if any(row["state"] == "error" for row in rows):
        raise typer.Exit(1)
