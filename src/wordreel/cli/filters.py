"""Which files may be found: options of the verbs that find some."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

import typer

DATES = ["%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"]


@dataclass(frozen=True)
class FilterOptions:
    """Named as `Library.search` and `Library.like` name them."""

    folder: Annotated[Path | None, typer.Option("--in", help="Only files under this folder.")] = None
    after: Annotated[
        datetime | None,
        typer.Option("--after", formats=DATES, help="Only files last changed at or after this day."),
    ] = None
    before: Annotated[
        datetime | None,
        typer.Option("--before", formats=DATES, help="Only files last changed before this day."),
    ] = None
    kind: Annotated[
        Literal["video", "audio", "image"] | None, typer.Option("--kind", help="Only files of this kind.")
    ] = None
    min_duration: Annotated[
        float | None, typer.Option("--longer", help="Only files at least so many seconds long.")
    ] = None
    max_duration: Annotated[
        float | None, typer.Option("--shorter", help="Only files at most so many seconds long.")
    ] = None
    has_speech: Annotated[
        bool | None,
        typer.Option("--speech/--no-speech", help="Only files in which words are, or are not, said."),
    ] = None
    has_text: Annotated[
        bool | None,
        typer.Option("--text/--no-text", help="Only files in which words are, or are not, shown."),
    ] = None


ANY_FILE = FilterOptions()
