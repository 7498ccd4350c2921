"""What a field of a query is, for every interface: its type, help, flag, limits and column, declared once.

The command line makes options of it (`cli.console.option_groups`), HTTP a pydantic model
(`serve.schemas`), saved searches JSON (`search.saved`), and the catalogue a condition.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import Field, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, get_args

from wordreel.catalogue.files import SqlCondition

SearchNorm = Literal["auto", "none", "gc", "csls", "is", "dis", "cent", "nnn", "sinkhorn"]
SearchOrder = Literal["relevance", "date"]
AUTO: SearchNorm = "auto"
SEARCHABLE: tuple[str, ...] = tuple(name for name in get_args(SearchNorm) if name != AUTO)
"""The normalisations that need neither other test queries nor a bank of videos, and can score candidates."""

METADATA = "query"
Kind = Literal["text", "name", "number", "count", "flag", "day", "folder", "file", "choice"]
PYTHON_TYPES: dict[Kind, Any] = {
    "text": str,
    "name": str,
    "number": float,
    "count": int,
    "flag": bool,
    "day": datetime,
    "folder": Path,
    "file": Path,
}


@dataclass(frozen=True)
class QueryField:
    """How a field is given.

    Args:
        kind: "text" and "name" are strings; "day" is a time; "file" is a path, and over HTTP an id.
        help: What it asks for.
        flag: Its flag on the command line, if that is not its name.
        choices: Of a "choice", the values.
        several: Whether it holds several values.
        at_least: The smallest number.
        at_most: The largest number.
        served_at_most: The largest number that HTTP accepts.
        saved: Whether a saved search stores it.
        where: The condition that a value puts on files.
        moments: SQL that selects (content, start, end) of the moments that have a value.
    """

    kind: Kind
    help: str
    flag: str = ""
    choices: tuple[str, ...] = ()
    several: bool = False
    at_least: float | None = None
    at_most: float | None = None
    served_at_most: float | None = None
    saved: bool = True
    where: Callable[[Any], SqlCondition] | None = None
    moments: str = ""

    @property
    def type(self) -> Any:
        """The type of one value."""
        return Literal[self.choices] if self.kind == "choice" else PYTHON_TYPES[self.kind]


def asked(default: Any, kind: Kind, help: str, **more: Any) -> Any:
    """Declare a field of a query.

    >>> asked(None, "number", "At least so many seconds long.", at_least=0).metadata["query"].kind
    'number'
    """
    return field(default=default, metadata={METADATA: QueryField(kind, help, **more)})


def query_field(one: Field[Any]) -> QueryField:
    """Say how a field of `Query` or `Filters` is given."""
    found: QueryField = one.metadata[METADATA]
    return found
