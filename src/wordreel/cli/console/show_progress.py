"""Progress of long work on standard error: bars on a terminal, a line now and then elsewhere, or JSON.

Where there is no terminal (a script, a log file, cron) a line is printed every ten seconds; with `--json` one
object per line, every second, for programs.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, NamedTuple

import typer

from wordreel.progress import Progress, ProgressCallback

if TYPE_CHECKING:
    from rich.progress import TaskID

LINE_EVERY = 10.0  # seconds
JSON_EVERY = 1.0


class Shown(NamedTuple):
    """One stage of the work as it is shown."""

    heading: str  # what is being done
    done: float  # of `total`, for the length of the bar
    total: float | None
    note: str  # behind the bar


def shown(now: Progress) -> Shown:
    """Show a stage that has no more to say than how far it is.

    >>> shown(Progress("embedding clips", 3, 12))
    Shown(heading='Embedding clips', done=3, total=12, note='3/12')
    """
    return Shown(now.stage.capitalize(), now.done, now.total, f"{now.done}/{now.total}")


@contextmanager
def show_progress(as_json: bool, describe: Callable[[Progress], Shown] = shown) -> Iterator[ProgressCallback]:
    """Yield a callback that shows progress until the block ends; before the first report it shows nothing."""
    if as_json:
        yield json_lines()
    elif not sys.stderr.isatty():
        yield lines(describe)
    else:
        with bars(describe) as on_progress:
            yield on_progress


def json_lines() -> ProgressCallback:
    """Print an object per line: the first report of a stage, the last, and one a second between."""
    due = Pace(JSON_EVERY, at_once=True)

    def on_progress(now: Progress) -> None:
        if due(now):
            typer.echo(json.dumps({"progress": asdict(now)}), err=True)

    return on_progress


def lines(describe: Callable[[Progress], Shown]) -> ProgressCallback:
    """Print a line every ten seconds, so work that is done sooner prints none."""
    due = Pace(LINE_EVERY, at_once=False)

    def on_progress(now: Progress) -> None:
        if due(now):
            one = describe(now)
            typer.echo(f"{one.heading}: {one.note}", err=True)

    return on_progress


@contextmanager
def bars(describe: Callable[[Progress], Shown]) -> Iterator[ProgressCallback]:
    """Show a bar for each heading, with its note behind."""
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bars

    columns = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[note]}")
    drawn = Bars(*columns, console=Console(stderr=True))
    tasks: dict[str, TaskID] = {}

    def on_progress(now: Progress) -> None:
        one = describe(now)
        if one.heading not in tasks:
            drawn.start()
            tasks[one.heading] = drawn.add_task(one.heading, total=None, note="")
        drawn.update(tasks[one.heading], completed=one.done, total=one.total, note=one.note)

    try:
        yield on_progress
    finally:
        if tasks:  # bars that never started would leave an empty line
            drawn.stop()


class Pace:
    """Says which reports are due: after some seconds, and in JSON also the first and the last of a stage."""

    def __init__(self, seconds: float, *, at_once: bool) -> None:
        self._seconds, self._at_once = seconds, at_once
        self._last, self._stage = time.monotonic(), ""

    def __call__(self, now: Progress) -> bool:
        """Return whether it is time to show this report."""
        edge = now.stage != self._stage or now.done == now.total
        self._stage = now.stage
        if not (self._at_once and edge) and time.monotonic() - self._last < self._seconds:
            return False
        self._last = time.monotonic()
        return True
