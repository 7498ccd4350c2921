"""Options that several verbs take together: the fields of a dataclass, or those of a query."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import Field, fields, is_dataclass
from functools import wraps
from typing import Annotated, Any, get_type_hints

import typer

from wordreel.search.query import question_fields
from wordreel.search.query_fields import QueryField, query_field

Verb = Callable[..., None]
DATES = ["%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"]
SEEN_HERE = ("text",)  # an argument of its own


def expand_options(verb: Verb) -> Verb:
    """Replace the dataclass parameters of a verb by one option for each of their fields."""
    groups: dict[str, tuple[Callable[..., Any], list[inspect.Parameter]]] = {}
    for name, parameter in inspect.signature(verb, eval_str=True).parameters.items():
        if is_dataclass(group := parameter.annotation):
            kinds = get_type_hints(group, include_extras=True)
            options = [
                parameter.replace(name=field.name, default=field.default, annotation=kinds[field.name])
                for field in fields(group)
            ]
            groups[name] = group, options  # type: ignore[assignment]
    return _with_groups(verb, groups)


def query_options(leave_out: Iterable[str] = ()) -> Callable[[Verb], Verb]:
    """Replace the parameter `query` of a verb by one option for each field of a query.

    The verb gets a dictionary: the keyword arguments of `Library.search`.
    """
    asked = [field for field in question_fields() if field.name not in (*SEEN_HERE, *leave_out)]
    return lambda verb: _with_groups(verb, {"query": (dict, [_option(field) for field in asked])})


def _with_groups(
    verb: Verb, groups: Mapping[str, tuple[Callable[..., Any], list[inspect.Parameter]]]
) -> Verb:
    """Return a verb with the options of each group in place of the parameter that it builds."""
    signature = inspect.signature(verb, eval_str=True)
    options: list[inspect.Parameter] = []
    for name, parameter in signature.parameters.items():
        options += groups[name][1] if name in groups else [parameter]

    @wraps(verb)
    def wrapped(**given: Any) -> None:
        for name, (build, group) in groups.items():
            given[name] = build(**{option.name: given.pop(option.name) for option in group})
        verb(**given)

    wrapped.__signature__ = signature.replace(parameters=options)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {option.name: option.annotation for option in options}
    return wrapped


def _option(field: Field[Any]) -> inspect.Parameter:
    about = query_field(field)
    kind, default = about.type, field.default
    if about.several:
        kind, default = list[kind] | None, None  # type: ignore[valid-type]
    elif default is None:
        kind = kind | None
    limits = {"min": about.at_least, "max": about.at_most}
    settings: dict[str, Any] = {name: value for name, value in limits.items() if value is not None}
    if about.kind == "day":
        settings["formats"] = DATES
    option = typer.Option(*_flags(field, about), help=about.help, **settings)
    return inspect.Parameter(
        field.name,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        default=default,
        annotation=Annotated[kind, option],
    )


def _flags(field: Field[Any], about: QueryField) -> list[str]:
    """Return the flags of a field; both of a field that asks whether."""
    flag = about.flag or "--" + field.name.replace("_", "-")
    if about.kind == "flag" and field.default is None:
        return [f"{flag}/{flag.replace('--has-', '--no-')}"]
    return flag.split(",")
