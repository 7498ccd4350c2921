"""What the terminal can do: colours and links."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from rich.cells import cell_len

from wordreel.cli.console.common import printable

BOLD, DIM = "1", "2"


def is_terminal() -> bool:
    """Return whether standard output is a terminal that understands escape sequences."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def has_colours() -> bool:
    """Return whether to colour what is printed.

    It is coloured on terminals, unless NO_COLOR is set (https://no-color.org).
    """
    return is_terminal() and not os.environ.get("NO_COLOR")


def styled(text: str, style: str) -> str:
    """Return the text, bold or dim where there are colours."""
    return f"\x1b[{style}m{text}\x1b[0m" if text and has_colours() else text


def linked(path: str) -> str:
    """Return a path as it may be printed; where the terminal can, as a link to the file."""
    text = printable(path)
    if not is_terminal() or not Path(path).is_absolute():
        return text
    import socket

    address = Path(path).as_uri().replace("file://", f"file://{socket.gethostname()}", 1)
    return f"\x1b]8;;{address}\x1b\\{text}\x1b]8;;\x1b\\"


def padded(text: str, width: int, shown: str | None = None) -> str:
    """Return the text, or what is `shown` for it, with spaces up to a width."""
    return (text if shown is None else shown) + " " * max(0, width - cell_len(text))
