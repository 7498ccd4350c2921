"""Find weights by name, whether they come inside a package or are added by the user."""

from __future__ import annotations

from wordreel.errors import NextStep, WeightsError
from wordreel.runtime import package_weights, published
from wordreel.runtime.package_weights import PackageWeights
from wordreel.runtime.published import PublishedWeights

WeightsEntry = PackageWeights | PublishedWeights


def names() -> tuple[str, ...]:
    """The name of all weights, those in packages first.

    >>> "minilm" in names() and "senet154" in names()
    True
    """
    return (*package_weights.ALL, *published.ALL)


def find(name: str) -> WeightsEntry:
    """The entry of that name; a WeightsError if there is none."""
    entry = package_weights.ALL.get(name) or published.ALL.get(name)
    if entry is None:
        raise WeightsError(f"there are no weights named {name!r}", NextStep("list all weights", "weights"))
    return entry
