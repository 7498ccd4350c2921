"""`wordreel` without a verb: what is in the library, and what to do next."""

from __future__ import annotations

from pathlib import Path

import typer

from wordreel.cli.console.common import count_of, long_time, printable


def print_next_steps(library: Path) -> None:
    """Say how many files there are and what waits, and name the commands to go on with."""
    from wordreel.catalogue.connection import NAME
    from wordreel.catalogue.files import count_videos
    from wordreel.catalogue.passes import waiting_files
    from wordreel.catalogue.store import LibraryStore

    files, waiting, failures = 0, 0, 0
    if (library / NAME).is_file():
        store = LibraryStore.open(library)
        files, seconds = count_videos(store)
        waiting, failures = len(waiting_files(store.catalogue)), len(store.failures())
        typer.echo(f"Library: {printable(library)}, {count_of(files, 'file')}, {long_time(seconds)}")
        store.close()
    steps = [
        (files, "search", 'search "a man lifts a car"'),
        (
            waiting,
            f"{count_of(waiting, 'file')} known by key frames alone: look at all of them",
            "add --thorough",
        ),
        (failures, f"{count_of(failures, 'file')} could not be added: see why", "list --failures"),
        (not files, "add your videos and pictures", "add FOLDER"),
        (True, "use the page in the browser", "serve --open"),
        (files, "add what comes by itself", "watch FOLDER"),
        (not files, "try it on a small library of its own", "demo"),
        (True, "see all commands", "--help"),
    ]
    if not files:
        typer.echo("Find the moment in your videos with words. The library is empty.")
    for wanted, text, command in steps:
        if wanted:
            typer.echo(f"→ {text}: `wordreel {command}`")
