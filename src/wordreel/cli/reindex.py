"""`wordreel reindex`."""

from __future__ import annotations

import typer

from wordreel.cli.common import LibraryOption, counter


def reindex(library: LibraryOption) -> None:
    """Embed all clips again from the stored tracks. No video is decoded.

    Example: wordreel reindex
    """
    from wordreel.api import Library

    with Library(library, create=False) as opened:
        typer.echo(f"{opened.reindex(counter('clips'))} clips embedded.")
