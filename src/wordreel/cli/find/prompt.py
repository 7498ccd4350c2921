"""The interactive prompt of `wordreel search` without words: one query after another, models stay loaded.

Queries are kept in a history of this machine, `wordreel/history` in the user's state folder, readable by the
user alone. `WORDREEL_HISTORY=off` keeps none.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import typer

from wordreel.errors import WordreelError

PROMPT = "search> "
HELP = "Type what to look for. A number plays that hit; an empty line or Ctrl-D ends."
KEPT = 500  # queries


def ask(search: Callable[[str], None], play: Callable[[int], None]) -> None:
    """Read queries until an empty line or the end of the input; errors are printed, not raised."""
    typer.echo(HELP)
    with history(history_file()):
        while True:
            try:
                words = input(PROMPT).strip()
            except EOFError:
                typer.echo()
                return
            if not words:
                return
            try:
                play(int(words)) if words.isdecimal() else search(words)
            except WordreelError as error:
                typer.echo(f"wordreel: {error}", err=True)


def history_file() -> Path | None:
    """Where queries are kept; None if they are not."""
    if os.environ.get("WORDREEL_HISTORY", "").lower() in ("off", "0", "no"):
        return None
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(state).expanduser() / "wordreel" / "history"


@contextmanager
def history(file: Path | None) -> Iterator[None]:
    """Line editing with the queries of earlier prompts; those of this one are added at the end."""
    try:
        import readline
    except ImportError:  # not on every system
        yield
        return
    readline.clear_history()
    readline.set_history_length(KEPT)
    if file is not None:
        with suppress(OSError):
            readline.read_history_file(file)
    try:
        yield
    finally:
        if file is not None:
            with suppress(OSError):  # a history that cannot be written is not worth an error
                file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                file.touch(mode=0o600)
                readline.write_history_file(file)
                file.chmod(0o600)
