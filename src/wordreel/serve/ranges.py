"""Byte ranges of RFC 9110: which part of a file is asked for."""

from __future__ import annotations

import re


class Unsatisfiable(Exception):
    """The range lies outside the file: 416."""


def asked_range(header: str | None, size: int) -> tuple[int, int] | None:
    """`[start, end)` of the one range asked for; None for the whole file.

    What is not a range of bytes is ignored, as the RFC asks; so are several ranges at once, which no player
    needs and which can be made expensive.

    >>> asked_range("bytes=0-99", 1000), asked_range("bytes=900-", 1000), asked_range("bytes=-50", 1000)
    ((0, 100), (900, 1000), (950, 1000))
    >>> asked_range("bytes=0-1,5-6", 1000), asked_range("lines=1-2", 1000), asked_range("bytes=5-2", 1000)
    (None, None, None)
    """
    if header is None:
        return None
    found = re.fullmatch(r"bytes=\s*([0-9]{0,20})-([0-9]{0,20})\s*", header)
    if found is None or found.group(1, 2) == ("", ""):
        return None
    first, last = found.groups()
    if not first:
        if int(last) == 0 or size == 0:
            raise Unsatisfiable
        return max(0, size - int(last)), size
    start = int(first)
    end = min(size, int(last) + 1) if last else size
    if last and int(last) < start:
        return None
    if start >= size:
        raise Unsatisfiable
    return start, end
