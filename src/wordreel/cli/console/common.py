"""What several verbs share: where the library is, and how times, sizes and JSON are read and printed."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from wordreel.cli.console.show_progress import LINE_EVERY, Pace
from wordreel.errors import WordreelError
from wordreel.progress import Progress, ProgressCallback
from wordreel.util.printable import printable_text


def default_library() -> Path:
    """Return `$WORDREEL_LIBRARY`, or `wordreel/library` in the user's data folder."""
    path = os.environ.get("WORDREEL_LIBRARY")
    if path:
        return Path(path)
    data = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(data).expanduser() / "wordreel" / "library"


def _library_option() -> Any:
    return typer.Option(
        "--library",
        "-L",
        default_factory=default_library,
        show_default="$WORDREEL_LIBRARY or ~/.local/share/wordreel/library",
        help="The library's folder.",
    )


LibraryOption = Annotated[Path, _library_option()]
if TYPE_CHECKING:
    from wordreel.library import Library

    OpenLibrary = Library
else:
    OpenLibrary = Annotated[Path, _library_option()]
    """The library itself, which exists and is open while the verb runs; see `open_library`."""
OnOption = Annotated[
    str | None,
    typer.Option(
        "--on",
        metavar="local|ray|ADDRESS",
        help="Spread the work over processes of this machine, or over a Ray cluster.",
    ),
]
IndexOption = Annotated[
    str | None,
    typer.Option(
        "--index",
        envvar="WORDREEL_INDEX",
        help="Search by this server, postgresql://… or milvus://…, or local.",
        show_default="as `wordreel index` chose",
        show_envvar=False,
    ),
]
LARGEST_JSON = 256 * 2**20  # bytes
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for a script to read.")]


def open_library(verb: Callable[..., None]) -> Callable[..., None]:
    """Let a verb with a parameter of type `OpenLibrary` get the library in place of its path."""
    kinds = get_type_hints(verb, include_extras=True)
    name = next((name for name, kind in kinds.items() if kind is OpenLibrary), None)
    if name is None:
        return verb

    @wraps(verb)
    def opened(**given: Any) -> None:
        from wordreel.library import Library

        with Library(given[name], create=False, index=given.get("index")) as library:
            verb(**{**given, name: library})

    return opened


class VerbGroup(typer.Typer):
    """A verb with verbs of its own."""

    def __init__(self, help: str, **settings: Any) -> None:
        super().__init__(help=help, add_completion=False, rich_markup_mode=None, **settings)

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        """Register a verb; one with an `OpenLibrary` gets it."""
        register = super().command(name, **settings)
        return lambda verb: register(open_library(verb))


def counter(what: str) -> ProgressCallback:
    """Print `done/total what` on one line of a terminal; elsewhere as a new line every ten seconds."""
    due = Pace(LINE_EVERY, at_once=False)

    def on_progress(now: Progress) -> None:
        line = f"{now.done}/{now.total} {what}"
        if sys.stderr.isatty():
            typer.echo(f"\r{line}", nl=now.done == now.total, err=True)
        elif due(now):
            typer.echo(line, err=True)

    return on_progress


def beta_number(text: str | None) -> float | None:
    """Parse `--beta`: a number, or None for auto or no value."""
    if text in (None, "auto"):
        return None
    try:
        return float(str(text))
    except ValueError:
        raise typer.BadParameter(f"--beta is a number or auto, not {text!r}.") from None


def names_in(text: str | None) -> list[str] | None:
    """Return the names in an option that are separated by commas; None for no value.

    >>> names_in("ocr, speech,"), names_in("")
    (['ocr', 'speech'], None)
    """
    return [name.strip() for name in text.split(",") if name.strip()] if text else None


def count_of(number: int, noun: str) -> str:
    """Return a number with its noun in the singular or the plural.

    >>> count_of(1, "file"), count_of(0, "file")
    ('1 file', '0 files')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def print_result(as_json: bool, value: Any, lines: Iterable[str]) -> None:
    """Print a result: as JSON for a script, or as lines for a person."""
    if as_json:
        print_json(value)
        return
    for line in lines:
        typer.echo(line)


def print_json(value: Any) -> None:
    """Print one JSON document; dataclasses are objects."""
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2, default=asdict))


def clock(seconds: float) -> str:
    """Format seconds as a person reads them off a player.

    >>> clock(75.26), clock(3671)
    ('1:15.3', '1:01:11.0')
    """
    tenths = round(seconds * 10)
    minutes, rest = divmod(tenths, 600)
    hours, minutes = divmod(minutes, 60)
    tail = f"{rest // 10:02d}.{rest % 10}"
    return f"{hours}:{minutes:02d}:{tail}" if hours else f"{minutes}:{tail}"


def percent(share: float) -> str:
    """Return a share in whole percent, rounded down as the page does: "5%" is never less than 5 %.

    >>> percent(0.05), percent(0.0499), percent(1.0)
    ('5%', '4%', '100%')
    """
    return f"{int(100 * share + 1e-9)}%"


def long_time(seconds: float) -> str:
    """Return a duration in the largest sensible unit.

    >>> long_time(42), long_time(600), long_time(7300)
    ('42 s', '10 min', '2 h 2 min')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"


def size_of(count: int) -> str:
    """Format bytes as people read them.

    >>> size_of(605_247_071), size_of(2_100)
    ('605.2 MB', '2.1 kB')
    """
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{count / 1e3:.1f} kB"


def printable(path: str | Path) -> str:
    r"""Return a path that is safe to print: control characters and undecodable bytes are escaped.

    >>> printable("a\nb")
    'a\\nb'
    """
    return printable_text(os.fspath(path))


def read_json_list(path: Path) -> list[Any]:
    """Return the list in a JSON file.

    Raises:
        WordreelError: The file cannot be read, or holds something else.
    """
    try:
        if path.stat().st_size > LARGEST_JSON:
            raise WordreelError(f"{path} is larger than {LARGEST_JSON / 2**20:.0f} MiB")
        rows = json.loads(path.read_bytes())
    except OSError as error:
        raise WordreelError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise WordreelError(f"{path} is not JSON: {error}") from None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise WordreelError(f"{path} does not hold a list of entries, as it is exported")
    return rows
