"""One pass over a bank: every statistic of a method is gathered from a block while it is in the cache.

Arrays and other sources are split between threads (NumPy releases the lock in its loops); the parts of the
threads are merged in order. Sources that compute their rows do so in `batches`. A plain stream of blocks is
read once, by one thread.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

from wordreel.errors import HubnessError
from wordreel.hubness.batches import Computed, is_computed, take_batches
from wordreel.hubness.blocks import (
    Blocks,
    Source,
    as_source,
    blocks_of,
    check,
    cut,
    each_span,
    matrix,
    short_buffers,
)
from wordreel.hubness.part import Builder, Part

LOGIT_REACH = 1.5  # cosines, and weighted means of them, stay within 1 but for rounding
COSINE_BETA = 5.0

Builders = Callable[[], dict[str, Builder]]


@dataclass(frozen=True)
class Gathered:
    """The parts of a bank of `size` queries over `items` items, and the largest absolute similarity."""

    parts: dict[str, Part]
    size: int
    items: int
    reach: float


def gather(
    blocks: Blocks, builders: Builders, items: int | None = None, threads: int | None = None
) -> Gathered:
    """Read the bank once. `items`, where known, is what the number of columns must be."""
    source = as_source(blocks)
    if source is None:
        return _from_stream(blocks, builders, items)
    if len(source.shape) != 2 or source.shape[1] == 0:
        raise HubnessError(f"the bank must be a matrix [queries, items], not of shape {source.shape}")
    if items is not None and source.shape[1] != items:
        raise HubnessError(f"the bank has {source.shape[1]} columns but the gallery has {items} items")
    if source.shape[0] == 0:
        raise HubnessError("the bank has no queries; give it at least one")
    if is_computed(source):
        return _from_batches(source, builders, threads)
    known = source

    def work(start: int, stop: int) -> Gathered:
        return _from_span(known, start, stop, builders)

    pieces = each_span(known, work, threads)
    parts = pieces[0].parts
    for piece in pieces[1:]:
        parts = {name: part.merge(piece.parts[name]) for name, part in parts.items()}
    return Gathered(parts, source.shape[0], source.shape[1], max(piece.reach for piece in pieces))


def _from_span(source: Source, start: int, stop: int, builders: Builders) -> Gathered:
    making = builders()
    reach = 0.0
    for _, block in blocks_of(source, start, stop):
        reach = max(reach, block.reach)
        for builder in making.values():
            builder.take(block)
    parts = {name: builder.part() for name, builder in making.items()}
    return Gathered(parts, stop - start, source.shape[1], reach)


def _from_batches(source: Computed, builders: Builders, threads: int | None) -> Gathered:
    making = builders()
    reach = take_batches(source, list(making.values()), threads)
    parts = {name: builder.part() for name, builder in making.items()}
    return Gathered(parts, source.shape[0], source.shape[1], reach)


def _from_stream(blocks: Blocks, builders: Builders, items: int | None) -> Gathered:
    making = builders()
    size, reach = 0, 0.0
    try:
        stream = iter(blocks)  # type: ignore[arg-type]
    except TypeError:
        raise HubnessError("a bank is a matrix, or row blocks of one, one after the other") from None
    for rows in stream:
        rows = matrix(rows, "a block of the bank", items)
        items = rows.shape[1]
        with short_buffers():
            for piece in cut(rows):
                block = check(piece, size)
                size, reach = size + len(block), max(reach, block.reach)
                for builder in making.values():
                    builder.take(block)
    if size == 0 or items is None:
        raise HubnessError("the bank has no queries; give it at least one")
    return Gathered({name: builder.part() for name, builder in making.items()}, size, items, reach)


def warn_of_logits(reach: float, beta: float) -> None:
    """Say so where the similarities look like logits and β like one for cosines."""
    if reach > LOGIT_REACH and beta >= COSINE_BETA:
        warnings.warn(
            f"similarities reach {reach:.4g}, so they look like logits, but beta = {beta:g} looks like one "
            "for cosines: divide it by the scale of the logits, beta_logit = beta_cos / scale (for a scale "
            f"of 100, {beta / 100:g}), or divide the similarities by the scale",
            UserWarning,
            stacklevel=3,
        )
