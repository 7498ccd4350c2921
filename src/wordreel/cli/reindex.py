"""`wordreel reindex`."""

from __future__ import annotations

import typer

from wordreel.cli.common import LibraryOption


def reindex(library: LibraryOption) -> None:
    """Make the embeddings anew from the stored tracks. No video is decoded.

    Example: wordreel reindex
    """
    from wordreel.api import Library

    typer.echo(f"{Library(library, create=False).reindex()} clips embedded.")
