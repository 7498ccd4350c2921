"""Fit methods to a bank: the similarities are computed, or read, once for all of them.

Statistics that two methods share, such as the log-sum-exp of IS and DIS with one β, are gathered once too.
Rows are split between threads (NumPy releases the lock in its loops), whose statistics are merged in order.
Sources that compute their rows do so in batches, one product on all cores at a time. A stream of blocks is
read once. Cost: O(bank · gallery).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from wordreel.errors import HubnessError
from wordreel.hubness.bank_statistics import LogSumExp, Spec, Statistic
from wordreel.hubness.blocks import ArraySource, Similarities, blocks_of, each_span, row_batches
from wordreel.hubness.device import gather_on_device, pick_gpu
from wordreel.hubness.state import GALLERY, QUERIES, BankState, State

if TYPE_CHECKING:
    from wordreel.hubness.method import Method

LOGIT_SIZE = 1.5  # cosines, and weighted means of them, stay within 1 but for rounding
COSINE_BETA = 5.0


class Collector:
    """Joins the statistics of blocks of a bank, given in order.

    Also `rows` of the bank, over so many `items`, and the largest absolute similarity.
    """

    def __init__(self, specs: Iterable[Spec]) -> None:
        self.parts: dict[Spec, list[Statistic]] = {spec: [] for spec in specs}
        self.rows, self.items, self.max_abs = 0, 0, 0.0
        self._waiting = dict.fromkeys(self.parts, 0)

    def add(self, spec: Spec, part: Statistic) -> None:
        """Add one part of a statistic; parts are merged once they cover enough rows."""
        parts = self.parts[spec]
        parts.append(part)
        self._waiting[spec] += part.size
        if len(parts) > 1 and self._waiting[spec] >= spec.kind.fold_rows:
            self.parts[spec], self._waiting[spec] = [parts[0].merge(*parts[1:])], 0

    @cached_property
    def statistics(self) -> dict[Spec, Statistic]:
        """Return every statistic of the whole bank, once all of it was added."""
        return {spec: parts[0].merge(*parts[1:]) for spec, parts in self.parts.items()}


def gather(
    blocks: Similarities, specs: Iterable[Spec], items: int | None = None, threads: int | None = None
) -> Collector:
    """Read a bank once. `items`, where known, is the number of columns it must have."""
    specs = list(specs)
    total = Collector(specs)
    for rows in row_batches(blocks, items):
        items, source, first = rows.shape[1], ArraySource(rows), total.rows

        def work(start: int, stop: int, source: ArraySource = source, first: int = first) -> Collector:
            part = Collector(specs)
            for _, block in blocks_of(source, start, stop, first):
                part.rows, part.max_abs = part.rows + len(block), max(part.max_abs, block.max_abs)
                for spec in specs:
                    part.add(spec, spec.kind.of(block, spec.parameter))
            return part

        for part in each_span(rows.shape, work, threads) if len(rows) else []:
            total.rows, total.max_abs = total.rows + part.rows, max(total.max_abs, part.max_abs)
            for spec, statistics in part.parts.items():
                for statistic in statistics:
                    total.add(spec, statistic)
    if total.rows == 0 or items is None:
        raise HubnessError("the bank has no queries; give it at least one")
    total.items = items
    return total


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
        methods: Any methods but Sinkhorn, which needs several passes.
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
        if not method.streaming:
            raise HubnessError(f"{method.name!r} is not fitted in one pass; fit it by itself")
        if not set(method.banks) <= set(given):
            raise HubnessError(f"{method.name!r} is fitted with {' and '.join(method.banks)}")
    gpu = pick_gpu(device, given.values(), methods) if methods else None
    banks: dict[str, Collector] = {}
    items = None
    for bank, rows in given.items():
        users = [method for method in methods if bank in method.banks]
        if not users:
            continue
        specs = dict.fromkeys(spec for method in users for spec in method.statistics(bank))
        if gpu is not None:
            banks[bank] = Collector(specs)
            columns = banks[bank].items = gather_on_device(rows, banks[bank], gpu)
            if items is not None and columns != items:
                raise HubnessError(f"the bank has {columns} columns but the gallery has {items} items")
        else:
            banks[bank] = gather(rows, specs, items, threads)
        items = banks[bank].items
        betas = [spec.parameter for spec in specs if spec.kind is LogSumExp]
        warn_if_logits(banks[bank].max_abs, max(betas, default=0.0))
    return [_state(method, banks) for method in methods]


def _state(method: Method, gathered: dict[str, Collector]) -> State:
    banks = {}
    for bank in method.banks:
        own = {spec.kind.key: gathered[bank].statistics[spec] for spec in method.statistics(bank)}
        banks[bank] = BankState(gathered[bank].rows, own)
    return State(method, gathered[QUERIES].items, banks)


def warn_if_logits(max_abs: float, beta: float) -> None:
    """Warn where the similarities look like logits and β like one for cosines."""
    if max_abs > LOGIT_SIZE and beta >= COSINE_BETA:
        warnings.warn(
            f"similarities reach {max_abs:.4g}, so they look like logits, but beta = {beta:g} looks like one "
            "for cosines: divide it by the scale of the logits, beta_logit = beta_cos / scale (for a scale "
            f"of 100, {beta / 100:g}), or divide the similarities by the scale",
            UserWarning,
            stacklevel=4,
        )
