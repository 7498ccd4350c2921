"""`wordreel reindex`."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout

import typer

from wordreel.cli.console.common import LibraryOption, OnOption, counter


def reindex(library: LibraryOption, on: OnOption = None) -> None:
    """Embed all clips again from the stored tracks. No video is decoded.

    Example: wordreel reindex
    Example: wordreel reindex --on ray
    """
    from wordreel.library import Library

    with Library(library, create=False) as opened:
        with redirect_stdout(sys.stderr):  # Ray prints
            clips = opened.reindex(counter("clips"), on=on)
        typer.echo(f"{clips} clips embedded.")
