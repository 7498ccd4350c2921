"""Text that is safe to print, whatever file names and recognised words hold."""

from __future__ import annotations


def printable_text(text: str) -> str:
    r"""Escape control characters, direction overrides and bytes that are not text.

    >>> printable_text("a\nb \u202egpj.mp4 \udcff")
    'a\\nb \\u202egpj.mp4 \\udcff'
    """
    known = text.encode("utf-8", "backslashreplace").decode()
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in known)
