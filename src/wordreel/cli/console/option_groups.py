"""Options that several verbs take together: a dataclass, one field each."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Any, get_type_hints


def expand_options(verb: Callable[..., None]) -> Callable[..., None]:
    """Replace the dataclass parameters of a verb by one option for each of their fields."""
    signature = inspect.signature(verb, eval_str=True)
    groups: dict[str, Any] = {
        name: one.annotation for name, one in signature.parameters.items() if is_dataclass(one.annotation)
    }
    options: list[inspect.Parameter] = []
    for name, one in signature.parameters.items():
        if name not in groups:
            options.append(one)
            continue
        kinds = get_type_hints(groups[name], include_extras=True)
        options += [
            one.replace(name=field.name, default=field.default, annotation=kinds[field.name])
            for field in fields(groups[name])
        ]

    @wraps(verb)
    def wrapped(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        verb(**given)

    wrapped.__signature__ = signature.replace(parameters=options)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {one.name: one.annotation for one in options}
    return wrapped
