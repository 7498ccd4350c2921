"""One pass over a bank: every statistic of a method is accumulated from a block while it is in the cache.

Arrays are split between threads (NumPy releases the lock in its loops), and the statistics of the threads
are merged in order. Sources that compute their rows do so in batches: a matrix product runs on all cores by
itself, the faster the more rows it has, and two at once only get in each other's way. So there is one product
at a time, into a reused buffer, and then the builders share the cores, each with the blocks of the batch in
order. A stream of blocks is read once, by one thread. Cost: O(bank · gallery).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, TypeGuard

import numpy as np

from wordreel.errors import HubnessError
from wordreel.hubness.blocks import (
    Similarities,
    SimilarityBlock,
    SimilaritySource,
    as_source,
    blocks_of,
    check,
    cut,
    each_span,
    matrix,
    short_buffers,
    thread_count,
)
from wordreel.hubness.statistic import Statistic, StatisticBuilder
from wordreel.types import Array

LOGIT_SIZE = 1.5  # cosines, and weighted means of them, stay within 1 but for rounding
COSINE_BETA = 5.0
BATCH_VALUES = 1 << 25

StatisticBuilders = Callable[[], dict[str, StatisticBuilder]]


@dataclass(frozen=True)
class Accumulated:
    """The statistics of a bank of `size` queries over `items` items, and the largest absolute similarity."""

    statistics: dict[str, Statistic]
    size: int
    items: int
    max_abs: float


class ComputedSource(SimilaritySource, Protocol):
    """A source that computes its rows, into a given buffer where that fits."""

    def read_into(self, start: int, stop: int, out: Array) -> Array: ...


def is_computed(source: SimilaritySource) -> TypeGuard[ComputedSource]:
    return hasattr(source, "read_into")


def accumulate(
    blocks: Similarities, builders: StatisticBuilders, items: int | None = None, threads: int | None = None
) -> Accumulated:
    """Read the bank once. `items`, where known, is the number of columns it must have."""
    source = as_source(blocks)
    if source is None:
        return _from_stream(blocks, builders, items)
    check_bank_shape(source.shape, items)
    if is_computed(source):
        return _from_batches(source, builders, threads)
    known = source

    def work(start: int, stop: int) -> Accumulated:
        return _from_span(known, start, stop, builders)

    pieces = each_span(known.shape, work, threads)
    statistics = pieces[0].statistics
    for piece in pieces[1:]:
        statistics = {name: one.merge(piece.statistics[name]) for name, one in statistics.items()}
    return Accumulated(statistics, source.shape[0], source.shape[1], max(piece.max_abs for piece in pieces))


def check_bank_shape(shape: tuple[int, ...], items: int | None = None) -> None:
    """Refuse a bank that is not `[queries, items]` with at least one query."""
    if len(shape) != 2 or shape[1] == 0:
        raise HubnessError(f"the bank must be a matrix [queries, items], not of shape {shape}")
    if items is not None and shape[1] != items:
        raise HubnessError(f"the bank has {shape[1]} columns but the gallery has {items} items")
    if shape[0] == 0:
        raise HubnessError("the bank has no queries; give it at least one")


def _from_span(source: SimilaritySource, start: int, stop: int, builders: StatisticBuilders) -> Accumulated:
    active = builders()
    max_abs = 0.0
    for _, block in blocks_of(source, start, stop):
        max_abs = max(max_abs, block.max_abs)
        for builder in active.values():
            builder.update(block)
    return Accumulated(_built(active), stop - start, source.shape[1], max_abs)


def _from_batches(source: ComputedSource, builders: StatisticBuilders, threads: int | None) -> Accumulated:
    active = builders()
    rows, items = source.shape
    max_abs = 0.0
    with ThreadPoolExecutor(thread_count(threads, rows * items)) as pool:
        for start, values in _batches(source):
            pieces = list(cut(values))
            firsts = start + np.cumsum([0, *map(len, pieces[:-1])])
            blocks = list(pool.map(_checked, pieces, firsts))
            max_abs = max(max_abs, *(block.max_abs for block in blocks))
            list(pool.map(lambda builder, blocks=blocks: _update(builder, blocks), active.values()))
    return Accumulated(_built(active), rows, items, max_abs)


def _batches(source: ComputedSource) -> Iterator[tuple[int, Array]]:
    rows, items = source.shape
    step = min(rows, max(1, BATCH_VALUES // items))
    out = np.empty((step, items), np.float32)
    for start in range(0, rows, step):
        yield start, source.read_into(start, min(start + step, rows), out)


def _checked(piece: Array, first: int) -> SimilarityBlock:
    with short_buffers():
        return check(piece, first)


def _update(builder: StatisticBuilder, blocks: list[SimilarityBlock]) -> None:
    with short_buffers():
        for block in blocks:
            builder.update(block)


def _from_stream(blocks: Similarities, builders: StatisticBuilders, items: int | None) -> Accumulated:
    active = builders()
    size, max_abs = 0, 0.0
    for rows in stream_of(blocks):
        rows = matrix(rows, "a block of the bank", items)
        items = rows.shape[1]
        with short_buffers():
            for piece in cut(rows):
                block = check(piece, size)
                size, max_abs = size + len(block), max(max_abs, block.max_abs)
                for builder in active.values():
                    builder.update(block)
    if size == 0 or items is None:
        raise HubnessError("the bank has no queries; give it at least one")
    return Accumulated(_built(active), size, items, max_abs)


def stream_of(blocks: Similarities) -> Iterator[Array]:
    """Row blocks, one after the other."""
    try:
        return iter(blocks)  # type: ignore[arg-type]
    except TypeError:
        raise HubnessError("a bank is a matrix, or row blocks of one, one after the other") from None


def _built(builders: dict[str, StatisticBuilder]) -> dict[str, Statistic]:
    return {name: builder.build() for name, builder in builders.items()}


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
