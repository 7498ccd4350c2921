"""What the terminal can do: colours, links, and how wide a text is on it."""

from __future__ import annotations

import os
import sys
import unicodedata
from pathlib import Path

from wordreel.cli.console.common import printable

BOLD, DIM = "1", "2"
LINKING_PROGRAMS = {"iTerm.app", "WezTerm", "vscode", "ghostty", "Hyper", "Tabby", "rio"}
LINKING_TERMS = ("xterm-kitty", "xterm-ghostty", "alacritty", "foot", "contour", "wezterm")
LINKING_VARIABLES = ("KITTY_WINDOW_ID", "WT_SESSION", "KONSOLE_VERSION", "DOMTERM")
FIRST_LINKING_VTE = 5000  # version 0.50 of the library of GNOME's terminals


def is_terminal() -> bool:
    """Whether standard output is a terminal that understands escape sequences."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def has_colours() -> bool:
    """Whether to colour what is printed: on terminals, unless NO_COLOR is set (https://no-color.org)."""
    return is_terminal() and not os.environ.get("NO_COLOR")


def has_links() -> bool:
    """Whether the terminal is known to open links (OSC 8)."""
    if not is_terminal():
        return False
    known = os.environ
    vte = known.get("VTE_VERSION", "")
    return (
        known.get("TERM_PROGRAM") in LINKING_PROGRAMS
        or known.get("TERM", "").startswith(LINKING_TERMS)
        or any(known.get(name) for name in LINKING_VARIABLES)
        or (vte.isdecimal() and int(vte) >= FIRST_LINKING_VTE)
    )


def styled(text: str, style: str) -> str:
    """Return the text, bold or dim where there are colours."""
    return f"\x1b[{style}m{text}\x1b[0m" if text and has_colours() else text


def linked(path: str) -> str:
    """Return a path as it may be printed; where the terminal can, as a link to the file."""
    text = printable(path)
    if not has_links() or not Path(path).is_absolute():
        return text
    import socket

    address = Path(path).as_uri().replace("file://", f"file://{socket.gethostname()}", 1)
    return f"\x1b]8;;{address}\x1b\\{text}\x1b]8;;\x1b\\"


def width_of(text: str) -> int:
    r"""Return the columns that a text takes: two for wide characters, none for marks that combine.

    >>> width_of("abc"), width_of("日本"), width_of("e\u0301")
    (3, 4, 1)
    """
    return sum(_columns(character) for character in text)


def padded(text: str, width: int, shown: str | None = None) -> str:
    """Return the text, or what is `shown` for it, with spaces up to a width."""
    return (text if shown is None else shown) + " " * max(0, width - width_of(text))


def _columns(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1
