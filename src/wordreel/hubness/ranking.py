"""Ranks of the right items after a correction, without keeping the corrected matrix.

A rank is 1 for the best, and equal scores share the mean of their places, as in `evaluate.ranks`. One pass
in blocks that stay in the cache: correct, compare with the right item's score, count.
"""

from __future__ import annotations

import numpy as np

from wordreel.errors import HubnessError
from wordreel.evaluate.ranks import ranks_of
from wordreel.hubness.blocks import Array, Blocks, Ids, as_source, blocks_of, each_span
from wordreel.hubness.method import Method
from wordreel.hubness.state import State
from wordreel.types import Float64


def corrected_ranks(
    method: Method, state: State, rows: Blocks, right: Ids, *, threads: int | None = None
) -> Float64:
    """Rank of item `right[i]` in row i of `rows [queries, items]` as `method` orders it.

    >>> from wordreel.hubness.plain import Plain
    >>> rows = np.array([[0.1, 0.9, 0.9]], np.float32)
    >>> corrected_ranks(Plain(), Plain().fit(rows), rows, np.array([1])).tolist()
    [1.5]
    """
    source = as_source(rows, "the query rows")
    if source is None:
        raise HubnessError("pass the query rows as one array or source")
    if source.shape[1] != state.items:
        raise HubnessError(
            f"the query rows have {source.shape[1]} columns but the gallery has {state.items} items"
        )
    right = np.asarray(right)
    if right.shape != (source.shape[0],) or right.dtype.kind not in "iu":
        raise HubnessError(f"{source.shape[0]} queries need as many right item numbers, not {right.shape}")
    if len(right) and (right.min() < 0 or right.max() >= state.items):
        raise HubnessError(f"right items must be numbers from 0 to {state.items - 1}")
    method.check_state(state)
    ranks = np.zeros(len(right))
    known = source

    def work(start: int, stop: int) -> None:
        scratch: Array = np.empty((0, 0))
        for at, block in blocks_of(known, start, stop):
            kind = method.score_kind(block.values.dtype)
            if scratch.shape != block.values.shape or scratch.dtype != kind:
                scratch = np.empty(block.values.shape, kind)
                score = method.scorer(state, kind)
            score(block, scratch)
            ranks[at : at + len(block)] = ranks_of(scratch, right[at : at + len(block)])

    if len(right):
        each_span(source, work, threads)
    return ranks
