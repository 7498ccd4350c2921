"""One name, one recipe: entries of the package catalogue and of the hub list side by side."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Protocol

from wordreel.errors import WeightsError
from wordreel.weights import catalogue


class Local(Protocol):
    """Weights a user brings: `how` says where people get them and which command installs them."""

    @property
    def name(self) -> str: ...
    @property
    def outputs(self) -> tuple[str, ...]: ...
    @property
    def converter(self) -> str | None: ...
    @property
    def how(self) -> str: ...


Recipe = catalogue.Entry | Local


def names() -> tuple[str, ...]:
    """Every name the store knows, packages first."""
    return (*catalogue.ALL, *_hub())


def recipe(name: str) -> Recipe:
    """The entry of that name."""
    found = catalogue.ALL.get(name) or _hub().get(name)
    if found is None:
        raise WeightsError(f"there are no weights named {name!r}; `wordreel weights` lists them all")
    return found


def how(found: Recipe, again: bool = False) -> str:
    """How to get these weights (anew): the command that fetches them, or where people find them."""
    if isinstance(found, catalogue.Entry):
        return f"wordreel weights fetch {'--again ' if again else ''}{found.name}"
    return found.how


def _hub() -> dict[str, Local]:
    # A list of its own, read only if it is there: the catalogue must not depend on it.
    if find_spec("wordreel.weights.hub") is None:
        return {}
    known: dict[str, Local] = import_module("wordreel.weights.hub").ALL
    return known
