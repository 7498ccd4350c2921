"""The methods by their short names."""

from __future__ import annotations

from dataclasses import fields

from wordreel.errors import HubnessError
from wordreel.hubness.centring import Centring
from wordreel.hubness.csls import CSLS
from wordreel.hubness.dual_dynamic_inverted_softmax import DualDynamicInvertedSoftmax
from wordreel.hubness.dual_inverted_softmax import DualInvertedSoftmax
from wordreel.hubness.dual_softmax import DualSoftmax
from wordreel.hubness.dynamic_inverted_softmax import DynamicInvertedSoftmax
from wordreel.hubness.globally_corrected import GloballyCorrected
from wordreel.hubness.inverted_softmax import InvertedSoftmax
from wordreel.hubness.method import Method
from wordreel.hubness.nnn import NNN
from wordreel.hubness.plain import Plain
from wordreel.hubness.sinkhorn import DualSinkhorn, Sinkhorn
from wordreel.hubness.standard_score import StandardScore
from wordreel.hubness.transductive_inverted_softmax import TransductiveInvertedSoftmax

METHODS: dict[str, type[Method]] = {
    kind.name: kind
    for kind in (
        Plain,
        GloballyCorrected,
        CSLS,
        InvertedSoftmax,
        DynamicInvertedSoftmax,
        Centring,
        NNN,
        DualInvertedSoftmax,
        DualDynamicInvertedSoftmax,
        Sinkhorn,
        DualSinkhorn,
        TransductiveInvertedSoftmax,
        DualSoftmax,
    )
}
STATISTICS: dict[str, type[Method]] = {
    StandardScore.name: StandardScore
}  # fitted like methods, but no ranking


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
    kinds = METHODS | STATISTICS
    if name not in kinds:
        raise HubnessError(f"there is no method {name!r}; choose one of {', '.join(sorted(METHODS))}")
    known = [field.name for field in fields(kinds[name])]
    if not set(parameters) <= set(known):
        raise HubnessError(
            f"{name!r} has the parameters {', '.join(known) or 'none'}, not {', '.join(parameters)}"
        )
    return kinds[name](**parameters)
