"""Names that are imported when they are first used."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazy_exports(package: str, modules: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package, whose `modules` map each module to the names it defines.

    A name must not be that of a module of the package: importing the module would replace it.
    """
    module_of = {name: module for module, names in modules.items() for name in names}

    def get(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{module_of[name]}"), name)

    return get


def import_named(path: str) -> Any:
    """Return what `MODULE:NAME` names."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)
