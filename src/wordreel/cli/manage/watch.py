"""`wordreel watch`."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wordreel.cli.console.common import JsonOption, LibraryOption, printable
from wordreel.cli.console.show_progress import json_lines, lines
from wordreel.cli.manage.add import describe

if TYPE_CHECKING:
    from wordreel.ingest.watch import EventKind, WatchEvent

LOWEST_PRIORITY = 19
SENTENCES: dict[EventKind, str] = {
    "absent": "waiting for {path}: {reason}",
    "back": "there again: {path}",
    "added": "added {path}",
    "changed": "added again, changed: {path}",
    "moved": "moved to {path}",
    "copy": "copy of a known file: {path}",
    "finished": "thorough pass done: {path}",
    "failed": "could not be added: {path}: {reason}",
    "busy": "waiting: {reason}",
    "moving": "still being written, not added: {path}",
    "idle": "up to date",
}


def watch(
    library: LibraryOption,
    folders: Annotated[list[Path], typer.Argument(help="Folders; those inside of them are watched too.")],
    once: Annotated[bool, typer.Option("--once", help="Add what is there now, then exit.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Watch folders, and add new and changed files by themselves.

    A file can be found seconds after it has been copied; its thorough pass follows when there is nothing
    else to do, one file at a time and at the lowest priority. Nothing is removed from the library, and an
    unplugged disk is waited for. Stop at any time; the same command resumes.

    Example: wordreel watch ~/Videos ~/Pictures
    """
    from wordreel.cli.setup.weights import fetch_missing
    from wordreel.library import Library

    os.nice(LOWEST_PRIORITY)
    fetch_missing(None, quiet=as_json)
    if not as_json and not once:
        typer.echo(f"Watching {', '.join(map(printable, folders))} (stop with Ctrl-C)")
    on_progress = json_lines() if as_json else lines(describe)
    with Library(library) as opened:
        for event in opened.watch(*folders, once=once, on_progress=on_progress):
            typer.echo(json.dumps(asdict(event)) if as_json else sentence(event))


def sentence(event: WatchEvent) -> str:
    """Say what happened, for people."""
    return SENTENCES[event.kind].format(path=printable(event.path), reason=printable(event.reason))
