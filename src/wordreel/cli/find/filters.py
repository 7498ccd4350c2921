"""Options of the verbs that search: which files they may return."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

if TYPE_CHECKING:
    from wordreel.search.query import FilterArguments

DATES = ["%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"]


@dataclass(frozen=True)
class FilterOptions:
    """The command-line spelling of `wordreel.Filters`, field by field."""

    folder: Annotated[Path | None, typer.Option("--in", help="Only files under this folder.")] = None
    after: Annotated[
        datetime | None,
        typer.Option("--after", formats=DATES, help="Only files last modified on or after this day."),
    ] = None
    before: Annotated[
        datetime | None,
        typer.Option("--before", formats=DATES, help="Only files last modified before this day."),
    ] = None
    kind: Annotated[
        Literal["video", "audio", "image"] | None, typer.Option("--kind", help="Only files of this kind.")
    ] = None
    min_duration: Annotated[
        float | None, typer.Option("--longer", help="Only files at least this many seconds long.")
    ] = None
    max_duration: Annotated[
        float | None, typer.Option("--shorter", help="Only files at most this many seconds long.")
    ] = None
    has_speech: Annotated[
        bool | None, typer.Option("--speech/--no-speech", help="Only files with, or without, speech.")
    ] = None
    has_text: Annotated[
        bool | None, typer.Option("--text/--no-text", help="Only files with, or without, on-screen text.")
    ] = None
    expert: Annotated[
        str | None, typer.Option("--expert", help="Only files that this expert has features of.")
    ] = None

    tags: Annotated[
        list[str] | None, typer.Option("--tag", help="Only moments with this tag; repeat it for several.")
    ] = None
    people: Annotated[
        list[str] | None, typer.Option("--person", help="Only moments in which this person is seen.")
    ] = None

    def chosen(self) -> FilterArguments:
        """As keyword arguments of `Library.search` and `Library.like`."""
        return cast("FilterArguments", vars(self).copy())


ANY_FILE = FilterOptions()
