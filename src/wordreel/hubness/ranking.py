"""Ranks of the right items before and after a correction, without keeping the corrected matrix.

A rank is 1 for the best, and equal scores share the mean of their places, as in `evaluate.ranks`. One pass
in blocks that stay in the cache: correct, compare with the right item's score, count.
"""

from __future__ import annotations

import numpy as np

from wordreel.errors import HubnessError
from wordreel.hubness.blocks import Array, Blocks, Ids, Source, as_source, blocks_of, each_span
from wordreel.hubness.method import Method
from wordreel.hubness.places import Places
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
    return _ranks(method, state, rows, right, threads, plain=False)[1]


def ranks_before_and_after(
    method: Method, state: State, rows: Blocks, right: Ids, *, threads: int | None = None
) -> tuple[Float64, Float64]:
    """Ranks of items `right` by the similarities alone and as `method` orders them, from one pass."""
    return _ranks(method, state, rows, right, threads, plain=True)


def _ranks(
    method: Method, state: State, rows: Blocks, right: Ids, threads: int | None, plain: bool
) -> tuple[Float64, Float64]:
    source, right = _checked(state, rows, right)
    method.check_state(state)
    before, after = np.zeros(len(right)), np.zeros(len(right))

    def work(start: int, stop: int) -> None:
        scratch: Array = np.empty((0, 0))
        places = Places(state.items)

        def rank(scores: Array, at: int) -> Float64:
            own = scores[np.arange(len(scores)), right[at : at + len(scores)]]
            return places.of(scores, own[:, None])

        for at, block in blocks_of(source, start, stop):
            span = slice(at, at + len(block))
            kind = method.score_kind(block.values.dtype)
            if scratch.shape != block.values.shape or scratch.dtype != kind:
                scratch = np.empty(block.values.shape, kind)
                score = method.scorer(state, kind)
            score(block, scratch)
            after[span] = rank(scratch, at)
            if plain:
                before[span] = rank(block.values, at)

    if len(right):
        each_span(source, work, threads)
    return before, after


def _checked(state: State, rows: Blocks, right: Ids) -> tuple[Source, Ids]:
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
    return source, right
