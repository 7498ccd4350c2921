"""The methods by their short names. The module of a method is imported when the method is looked up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from importlib import import_module

from wordreel.errors import HubnessError
from wordreel.hubness.method import Method


class Methods(Mapping[str, type[Method]]):
    """Methods by name, each of them imported from its module of this package."""

    def __init__(self, places: Mapping[str, str]) -> None:
        """`places` maps a name to `module:Class`."""
        self._places = places

    def __getitem__(self, name: str) -> type[Method]:
        module, _, kind = self._places[name].partition(":")
        method: type[Method] = getattr(import_module(f"wordreel.hubness.{module}"), kind)
        return method

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


METHODS = Methods(
    {
        "none": "plain:Plain",
        "gc": "globally_corrected:GloballyCorrected",
        "csls": "csls:CSLS",
        "is": "inverted_softmax:InvertedSoftmax",
        "dis": "dynamic_inverted_softmax:DynamicInvertedSoftmax",
        "cent": "centring:Centring",
        "nnn": "nnn:NNN",
        "dual-is": "dual_inverted_softmax:DualInvertedSoftmax",
        "dual-dis": "dual_dynamic_inverted_softmax:DualDynamicInvertedSoftmax",
        "sinkhorn": "sinkhorn:Sinkhorn",
        "dual-sinkhorn": "sinkhorn:DualSinkhorn",
        "test-is": "transductive_inverted_softmax:TransductiveInvertedSoftmax",
        "dsl": "dual_softmax:DualSoftmax",
    }
)
STATISTICS = Methods({"unusual": "standard_score:StandardScore"})
"""Fitted like methods, but no ranking."""


def make_method(name: str, **parameters: object) -> Method:
    """A method by its short name.

    Args:
        name: One of `METHODS`: none, gc, csls, is, dis, cent, nnn, sinkhorn, a dual method, or test-is and
            dsl, which are transductive: they use all test queries.
        parameters: Parameters that differ from the method's defaults, such as `beta`.

    Returns:
        A frozen dataclass with `fit` and `apply`.

    Raises:
        HubnessError: There is no such method or parameter, or a value is out of range.

    >>> make_method("dis", beta=10.0)
    DynamicInvertedSoftmax(beta=10.0, k=1)
    """
    kinds = STATISTICS if name in STATISTICS else METHODS
    if name not in kinds:
        raise HubnessError(f"there is no method {name!r}; choose one of {', '.join(sorted(METHODS))}")
    kind = kinds[name]
    known = [field.name for field in fields(kind)]
    if not set(parameters) <= set(known):
        raise HubnessError(
            f"{name!r} has the parameters {', '.join(known) or 'none'}, not {', '.join(parameters)}"
        )
    return kind(**parameters)
