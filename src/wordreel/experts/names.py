"""Names of classes, one a line, in the order of a network's outputs."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def names(file: str) -> tuple[str, ...]:
    """The names in one of the lists of `experts/data`; lines that begin with # say where a list is from.

    >>> names("kinetics400.txt")[:2]
    ('abseiling', 'air drumming')
    """
    text = (files("wordreel.experts") / "data" / file).read_text(encoding="utf-8")
    return tuple(line for line in text.splitlines() if not line.startswith("#"))
