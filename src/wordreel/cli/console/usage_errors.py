"""What is wrong with a command line, in words that say what to write instead."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from difflib import get_close_matches
from typing import Any, Literal, get_args, get_origin

import typer

UsageError: Any = typer.BadParameter.__base__  # which typer does not export
SIMILAR = 0.75


def expected(kind: Any, info: Any) -> str | None:
    """Describe the values that an option takes; None of files, whose own errors say what is wrong.

    >>> expected(int, typer.Option(min=1)), expected(Literal["csv", "edl"], typer.Option())
    ('a whole number of at least 1', 'one of csv, edl')
    """
    if get_origin(kind) is Literal:
        return f"one of {', '.join(map(str, get_args(kind)))}"
    if get_origin(kind) in (list, tuple):
        return expected(get_args(kind)[0], info)
    if kind is datetime:
        return "a day like 2024-05-31 or a time like 2024-05-31T14:30"
    if kind not in (int, float):
        return None
    number = "a whole number" if kind is int else "a number"
    low, high = info.min, info.max
    if low is not None and high is not None:
        return f"{number} from {low:g} to {high:g}"
    if low is not None:
        return f"{number} of at least {low:g}"
    return number if high is None else f"{number} of at most {high:g}"


@contextmanager
def plain_errors() -> Iterator[None]:
    """Say what an option takes; suggest the option that an unknown one resembles."""
    try:
        yield
    except UsageError as error:
        if (name := getattr(error, "option_name", None)) and hasattr(error, "possibilities"):
            similar = get_close_matches(name, error.possibilities or (), 1, SIMILAR)
            hint = f"; did you mean {similar[0]}?" if similar else ""
            if error.ctx.info_name == "search" and not name.startswith("--"):
                hint = '; to exclude a word, put the query in quotes: `wordreel search "a street -car"`'
            error.message = f"there is no option {name}{hint}"
            error.possibilities = None
        elif message := _wrong_value(error):
            error.message = message
        raise


def _wrong_value(error: Any) -> str | None:
    """What a validation error of pydantic says in our words; None of any other error."""
    descriptor = getattr(getattr(error, "param", None), "type_descriptor", None)
    if descriptor is None or not hasattr(error.__cause__, "errors"):
        return None
    wanted = expected(descriptor.annotation, descriptor.parameter_info)
    given = error.__cause__.errors()[0]["input"]
    return None if wanted is None else f"{given!r} is not {wanted}"
