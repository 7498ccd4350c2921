"""`wordreel doctor`: is everything here that searching needs, and does it work?"""

from __future__ import annotations

from dataclasses import asdict

import typer

from wordreel.cli.common import JsonOption, LibraryOption, print_json, printable


def doctor(library: LibraryOption, as_json: JsonOption = False) -> None:
    """Check the environment, the weights, the experts' outputs and the library's embeddings.

    Example: wordreel doctor
    """
    from wordreel.doctor import examine

    findings = []
    for finding in examine(library):
        findings.append(finding)
        if not as_json:
            typer.echo(f"{finding.state:<5}  {finding.what}: {printable(finding.detail)}")
            if finding.advice:
                typer.echo(f"       → {printable(finding.advice)}")
    if as_json:
        print_json([asdict(finding) for finding in findings])
    if any(finding.state == "error" for finding in findings):
        raise typer.Exit(1)
