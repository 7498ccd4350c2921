"""The methods by their short names."""

from __future__ import annotations

from dataclasses import fields

from wordreel.errors import HubnessError
from wordreel.hubness.method import Method
from wordreel.hubness.methods.centring import Centring
from wordreel.hubness.methods.csls import CSLS
from wordreel.hubness.methods.dual_banks import DualDynamicInvertedSoftmax, DualInvertedSoftmax
from wordreel.hubness.methods.dual_softmax import DualSoftmax
from wordreel.hubness.methods.dynamic_inverted_softmax import DynamicInvertedSoftmax
from wordreel.hubness.methods.globally_corrected import GloballyCorrected
from wordreel.hubness.methods.inverted_softmax import InvertedSoftmax, TransductiveInvertedSoftmax
from wordreel.hubness.methods.nnn import NNN
from wordreel.hubness.methods.plain import Plain
from wordreel.hubness.methods.sinkhorn import DualSinkhorn, Sinkhorn
from wordreel.hubness.standard_score import StandardScore

METHODS: dict[str, type[Method]] = {
    method.name: method
    for method in (
        Plain, GloballyCorrected, CSLS, InvertedSoftmax, DynamicInvertedSoftmax, Centring, NNN,
        DualInvertedSoftmax, DualDynamicInvertedSoftmax, Sinkhorn, DualSinkhorn,
        TransductiveInvertedSoftmax, DualSoftmax,
    )
}  # fmt: skip
STATISTICS: dict[str, type[Method]] = {StandardScore.name: StandardScore}
"""Fitted like methods, but no ranking."""


def make_method(name: str, **parameters: object) -> Method:
    """Return a method by its short name.

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
    kind = {**METHODS, **STATISTICS}.get(name)
    if kind is None:
        raise HubnessError(f"there is no method {name!r}; choose one of {', '.join(sorted(METHODS))}")
    known = [field.name for field in fields(kind)]
    if not set(parameters) <= set(known):
        raise HubnessError(
            f"{name!r} has the parameters {', '.join(known) or 'none'}, not {', '.join(parameters)}"
        )
    return kind(**parameters)
