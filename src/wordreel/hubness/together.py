"""Fit several methods in one pass: the similarities are computed, or read, once for all of them.

Statistics that two methods share, such as the log-sum-exp of IS and DIS with one β, are gathered once too.
"""

from __future__ import annotations

from collections.abc import Sequence

from wordreel.errors import HubnessError
from wordreel.hubness.blocks import Blocks
from wordreel.hubness.gather import Gathered, gather, warn_of_logits
from wordreel.hubness.method import Method
from wordreel.hubness.part import Builder
from wordreel.hubness.state import GALLERY, QUERIES, BankState, State


def fit_many(
    methods: Sequence[Method], blocks: Blocks, gallery: Blocks | None = None, *, threads: int | None = None
) -> list[State]:
    """One state per method, each as its own `fit` gives it; `gallery` is for those with a second bank.

    >>> import numpy as np
    >>> from wordreel.hubness.registry import make
    >>> bank = np.array([[0.9, 0.1], [0.8, 0.2]], np.float32)
    >>> [state.method.name for state in fit_many([make("is"), make("dis"), make("csls")], bank)]
    ['is', 'dis', 'csls']
    """
    given = {QUERIES: blocks} | ({} if gallery is None else {GALLERY: gallery})
    for method in methods:
        if not gathered(method):
            raise HubnessError(f"{method.name!r} is not gathered in one pass; fit it by itself")
        if not set(method.banks) <= set(given):
            raise HubnessError(f"{method.name!r} is fitted with {' and '.join(method.banks)}")
    if not methods:
        return []
    found: dict[str, Gathered] = {}
    items = None
    for bank, rows in given.items():
        users = [method for method in methods if bank in method.banks]
        if users:
            found[bank] = gather(rows, lambda users=users, bank=bank: _shared(users, bank), items, threads)  # type: ignore[misc]
            items = found[bank].items
            warn_of_logits(found[bank].reach, max(method.inverse_temperature(bank) for method in users))
    return [_state(method, found) for method in methods]


def gathered(method: Method) -> bool:
    """Whether a method is a matter of one pass over its banks, which others can share."""
    return type(method).fit is Method.fit


def _state(method: Method, found: dict[str, Gathered]) -> State:
    banks = {}
    for bank in method.banks:
        parts = {name: found[bank].parts[_key(name, made)] for name, made in method.builders(bank).items()}
        banks[bank] = BankState(found[bank].size, parts)
    return State(method, found[method.banks[0]].items, banks)


def _shared(methods: Sequence[Method], bank: str) -> dict[str, Builder]:
    return {
        _key(name, builder): builder for method in methods for name, builder in method.builders(bank).items()
    }


def _key(name: str, builder: Builder) -> str:
    """The statistic and its parameters; builders that keep no parameters are told apart by their name."""
    return repr(getattr(builder, "key", name))
