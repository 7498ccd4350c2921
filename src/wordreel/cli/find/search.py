"""`wordreel search`, and its interactive prompt without words: one query after another, models stay loaded.

The prompt keeps queries in a history of this machine, `wordreel/history` in the user's state folder, readable
by the user alone. `WORDREEL_HISTORY=off` keeps none.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from wordreel.catalogue.files import passing_contents
from wordreel.cli.console.common import (
    IndexOption,
    JsonOption,
    OpenLibrary,
    counter,
    print_json,
    printable,
)
from wordreel.cli.console.option_groups import query_options
from wordreel.cli.find.hit_lines import print_comparison, print_hits
from wordreel.errors import NextStep, QueryError, WordreelError
from wordreel.search.filters import Filters
from wordreel.search.query import Query, QueryArguments

if TYPE_CHECKING:
    from wordreel.library import Library
    from wordreel.search.hits import Hit, Results


# The products of one query are too small to share, and both encoders run at once. Before NumPy is loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

PROMPT = "search> "
HELP = "Type what to look for. A number plays that hit; an empty line or Ctrl-D ends."
HISTORY_LENGTH = 500  # queries


@query_options()
def search(
    library: OpenLibrary,
    query: QueryArguments,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            help="What to look for, in your own words; a prompt asks if there are none.", show_default=False
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="A line for every hit: long shots, and moments of one video, too.")
    ] = False,
    preview: Annotated[
        bool, typer.Option("--preview", help="Show frames of each hit, in kitty and iTerm2.")
    ] = False,
    open_best: Annotated[bool, typer.Option("--open", help="Play the best hit, from its moment on.")] = False,
    index: IndexOption = None,
    form: Annotated[
        Literal["csv", "edl", "otio", "m3u"] | None,
        typer.Option("--format", help="Print a table, an edit list or a playlist for other programs."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Find videos, and the second in them, with words.

    Words in double quotes must be said or shown; -word and "without a word" leave moments out.

    Examples:
      wordreel search "somebody plays the guitar" --folder ~/Videos/2024 --limit 3

      wordreel search "somebody opens a door" --then "a cat runs out"

      wordreel search --like ~/Videos/party.mp4 --second 95

      wordreel search "a red car" --compare

      wordreel search "a red car" --format edl > cars.edl

      wordreel search
    """
    pictures = None
    if preview:
        from wordreel.cli.find.pictures import previewer

        pictures = previewer()
    text = " ".join(words) if words else None
    if text is None and query["image"] is None and query["like"] is None:
        if as_json or form is not None or not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise QueryError(
                'say what to look for: `wordreel search "a dog on a beach"`, or --like FILE or --image FILE'
            )
        _prompt(library, query, every, pictures)
        return
    asked = Query.build(text, **query)
    results = library.search(asked, on_progress=counter("queries of the bank embedded"))
    if results.note and (asked.bank is not None or asked.compare or asked.norm != "auto"):
        typer.echo(str(results.note), err=True)
    _print_notices(results)
    if form is not None:
        typer.echo(library.export_hits(results, form), nl=False)
    elif as_json:
        print_json(as_plain(results))
    elif asked.compare and (results or results.plain):
        print_comparison(results)
    else:
        print_found(library, asked, results, every, pictures)
    if open_best and results:
        _play(results[0])


def print_found(
    library: Library,
    query: Query,
    results: Results[Hit],
    every: bool = False,
    preview: Callable[[Hit], str] | None = None,
) -> None:
    """Print hits, or why there are none."""
    if results:
        print_hits(results, every, preview)
    else:
        typer.echo(why_nothing(library, query))


def _prompt(
    library: Library, chosen: QueryArguments, every: bool, preview: Callable[[Hit], str] | None
) -> None:
    """Answer one query after another."""
    last: list[Hit] = []

    def search(words: str) -> None:
        asked = Query.build(words, **chosen)
        results = library.search(asked)
        _print_notices(results)
        last[:] = results
        print_found(library, asked, results, every, preview)

    def play(rank: int) -> None:
        found = next((hit for hit in last if hit.rank == rank), None)
        if found is None:
            raise WordreelError(f"there is no hit {rank}; search first")
        _play(found)

    ask(search, play)


def _print_notices(results: Results[Hit]) -> None:
    for notice in results.notices:
        typer.echo(f"note: {printable(notice)}", err=True)


def _play(hit: Hit) -> None:
    subprocess.Popen(player(hit), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def as_plain(results: Results[Hit]) -> Any:
    """Convert results to JSON values.

    These are a list of hits; with `--compare` two lists and the normalisation.
    """
    if results.plain is None:
        return results.to_dicts()
    plain = replace(results, hits=results.plain)
    return {"norm": results.norm, "plain": plain.to_dicts(), "normalised": results.to_dicts()}


def why_nothing(library: Library, query: Query) -> str:
    """Say why there are no hits, and what to do."""
    filters = query.filters
    if not library.store.files():
        return "Nothing to show: the library is empty. Add videos: `wordreel add FOLDER`."
    if filters.expert is not None and filters.expert not in (known := library.store.expert_names()):
        there = ", ".join(sorted(known))
        return f"Nothing to show: no file has features by an expert {filters.expert!r}; there are {there}."
    inside = Filters(folder=filters.folder).conditions
    if filters.folder is not None and not passing_contents(library.store.catalogue, inside):
        return f"Nothing to show: no file of the library is in {printable(str(filters.folder))}."
    if query.min_confidence > 0:
        return f"Nothing to show: no hit is {query.min_confidence:.0%} sure; lower --min-confidence."
    if query.video is not None and filters == Filters():
        return "Nothing to show: no other video of the library can be compared with it."
    return "Nothing to show: no file in the library passes these filters."


def player(hit: Hit) -> list[str]:
    """Return the command that plays a hit: at its moment with a known player, else as the desktop would."""
    from wordreel.catalogue.paths import is_imported

    path = str(hit.path)
    if is_imported(path):
        raise WordreelError(f"{hit.path} was imported as features; there is no file to play")
    if mpv := shutil.which("mpv"):
        return [mpv, f"--start={hit.start:.2f}", "--", path]
    if vlc := shutil.which("vlc"):
        return [vlc, f"--start-time={hit.start:.2f}", hit.path.absolute().as_uri()]
    opener = shutil.which("xdg-open") or shutil.which("open")
    if opener is None:
        raise WordreelError("no player was found", NextStep(f"install mpv, or open {hit.path} yourself"))
    return [opener, path]


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
    """Return the file where queries are kept; None if they are not."""
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
    readline.set_history_length(HISTORY_LENGTH)
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
