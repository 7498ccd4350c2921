"""Fit several methods in one pass: the similarities are computed, or read, once for all of them.

Statistics that two methods share, such as the log-sum-exp of IS and DIS with one β, are accumulated once too.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from wordreel.errors import HubnessError
from wordreel.hubness.accumulate import Accumulated, accumulate, warn_if_logits
from wordreel.hubness.blocks import Similarities
from wordreel.hubness.device import pick_gpu
from wordreel.hubness.method import Method
from wordreel.hubness.state import GALLERY, QUERIES, BankState, State
from wordreel.hubness.statistic import StatisticBuilder


def fit_many(
    methods: Sequence[Method],
    blocks: Similarities,
    gallery: Similarities | None = None,
    *,
    threads: int | None = None,
    device: str = "cpu",
) -> list[State]:
    """Fit several methods in one pass over the bank.

    Args:
        methods: Methods that need only one pass (`Method.single_pass`).
        blocks: `[bank, items]` similarities: an array, memory map, source (`product`) or row blocks.
        gallery: `[gallery bank, items]` similarities between items, for the methods with a second bank.
        threads: CPU threads; all cores by default.
        device: `cpu`, `cuda`, or `auto` for a GPU where there is one.

    Returns:
        One state per method, each as its own `fit` returns it.

    Raises:
        HubnessError: A method needs more than one pass or another bank, or a similarity is not finite.

    >>> import numpy as np
    >>> from wordreel.hubness.registry import make_method
    >>> bank = np.array([[0.9, 0.1], [0.8, 0.2]], np.float32)
    >>> [state.method.name for state in fit_many([make_method("is"), make_method("csls")], bank)]
    ['is', 'csls']
    """
    given = {QUERIES: blocks} | ({} if gallery is None else {GALLERY: gallery})
    for method in methods:
        if not method.single_pass:
            raise HubnessError(f"{method.name!r} is not fitted in one pass; fit it by itself")
        if not set(method.banks) <= set(given):
            raise HubnessError(f"{method.name!r} is fitted with {' and '.join(method.banks)}")
    if not methods:
        return []
    gpu = pick_gpu(device, given.values(), methods)
    if gpu is not None:
        from wordreel.hubness.torch_fit import fit_on_device

        return fit_on_device(methods, blocks, gallery, device=gpu)
    results: dict[str, Accumulated] = {}
    items = None
    for bank, rows in given.items():
        users = [method for method in methods if bank in method.banks]
        if users:
            results[bank] = accumulate(rows, partial(_shared, users, bank), items, threads)
            items = results[bank].items
            warn_if_logits(results[bank].max_abs, max(method.inverse_temperature(bank) for method in users))
    return [_state(method, results) for method in methods]


def _state(method: Method, results: dict[str, Accumulated]) -> State:
    banks = {}
    for bank in method.banks:
        statistics = {
            name: results[bank].statistics[repr(builder.key)]
            for name, builder in method.builders(bank).items()
        }
        banks[bank] = BankState(results[bank].size, statistics)
    return State(method, results[method.banks[0]].items, banks)


def _shared(methods: Sequence[Method], bank: str) -> dict[str, StatisticBuilder]:
    return {repr(builder.key): builder for method in methods for builder in method.builders(bank).values()}
