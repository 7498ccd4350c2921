"""Options of the verbs that search, made from the fields of `Query` and its filters."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Container
from dataclasses import Field
from functools import wraps
from typing import Annotated, Any

import typer

from wordreel.search.query import question_fields
from wordreel.search.query_fields import QueryField, query_field

DATES = ["%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"]
SEEN_HERE = ("text",)  # an argument of its own


def query_options(
    leave_out: Container[str] = (),
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Replace the parameter `query` of a verb by one option for each field of a query.

    The verb gets a dictionary: the keyword arguments of `Library.search`.
    """

    def replaced(verb: Callable[..., None]) -> Callable[..., None]:
        asked = [one for one in question_fields() if one.name not in SEEN_HERE and one.name not in leave_out]
        signature = inspect.signature(verb, eval_str=True)
        options: list[inspect.Parameter] = []
        for name, one in signature.parameters.items():
            options += [_option(field) for field in asked] if name == "query" else [one]

        @wraps(verb)
        def wrapped(**given: Any) -> None:
            given["query"] = {one.name: given.pop(one.name) for one in asked}
            verb(**given)

        wrapped.__signature__ = signature.replace(parameters=options)  # type: ignore[attr-defined]
        wrapped.__annotations__ = {one.name: one.annotation for one in options}
        return wrapped

    return replaced


def _option(one: Field[Any]) -> inspect.Parameter:
    about = query_field(one)
    kind, default = about.type, one.default
    if about.several:
        kind, default = list[kind] | None, None  # type: ignore[valid-type]
    elif default is None:
        kind = kind | None
    limits = {"min": about.at_least, "max": about.at_most}
    settings: dict[str, Any] = {name: value for name, value in limits.items() if value is not None}
    if about.kind == "day":
        settings["formats"] = DATES
    option = typer.Option(*_flags(one, about), help=about.help, **settings)
    return inspect.Parameter(
        one.name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=Annotated[kind, option]
    )


def _flags(one: Field[Any], about: QueryField) -> list[str]:
    """The flags of a field; of one that asks whether, both."""
    flag = about.flag or "--" + one.name.replace("_", "-")
    if about.kind == "flag" and one.default is None:
        return [f"{flag}/{flag.replace('--has-', '--no-')}"]
    return flag.split(",")
