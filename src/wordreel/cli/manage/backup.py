"""`wordreel backup` and `wordreel restore`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wordreel.cli.console.common import JsonOption, LibraryOption, count_of, counter, print_json, printable

if TYPE_CHECKING:
    from wordreel.maintain.backup import BackupReport


def backup(
    folder: Annotated[Path, typer.Argument(help="Where the copy goes: an empty folder, or its last backup.")],
    library: LibraryOption,
    as_json: JsonOption = False,
) -> None:
    """Copy a library to another folder, also while it is in use.

    Only what is new since the last backup to the same folder is copied. Caches are left out; they are built
    again when they are needed. The videos themselves are not part of a library. Exits with status 1 if tracks
    of the library are damaged; they are named and not copied.

    Example: wordreel backup /media/usb/wordreel
    """
    from wordreel.library import Library

    report = Library(library, create=False).backup(folder, counter("tracks checked"))
    _print(report, as_json, "copied to")


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
    _print(report, as_json, "restored to")


def _print(report: BackupReport, as_json: bool, what: str) -> None:
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
