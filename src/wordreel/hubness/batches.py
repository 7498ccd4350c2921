"""Similarities that must be computed first: a batch of rows by all cores, then every statistic of it.

A matrix product runs on all cores by itself, and the faster the more rows it has; two of them at once only
get in each other's way. So there is one product at a time, into memory that is used again, and then the
builders share the cores between them, each with the blocks of the batch in order.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeGuard

import numpy as np

from wordreel.hubness.blocks import Array, Block, Source, check, cut, short_buffers, thread_count
from wordreel.hubness.part import Builder

BATCH_VALUES = 1 << 25


class Computed(Source, Protocol):
    """A source that computes its rows, into memory it is given where that fits."""

    def read_into(self, start: int, stop: int, out: Array) -> Array: ...


def is_computed(source: Source) -> TypeGuard[Computed]:
    return hasattr(source, "read_into")


def take_batches(source: Computed, builders: list[Builder], threads: int | None) -> float:
    """Give every row to every builder; the largest absolute similarity."""
    rows, items = source.shape
    reach = 0.0
    with ThreadPoolExecutor(thread_count(threads, rows * items)) as pool:
        for start, values in _batches(source):
            pieces = list(cut(values))
            firsts = start + np.cumsum([0, *map(len, pieces[:-1])])
            blocks = list(pool.map(_checked, pieces, firsts))
            reach = max(reach, *(block.reach for block in blocks))
            list(pool.map(lambda builder, blocks=blocks: _take(builder, blocks), builders))
    return reach


def _batches(source: Computed) -> Iterator[tuple[int, Array]]:
    rows, items = source.shape
    step = min(rows, max(1, BATCH_VALUES // items))
    out = np.empty((step, items), np.float32)
    for start in range(0, rows, step):
        yield start, source.read_into(start, min(start + step, rows), out)


def _checked(piece: Array, first: int) -> Block:
    with short_buffers():
        return check(piece, first)


def _take(builder: Builder, blocks: list[Block]) -> None:
    with short_buffers():
        for block in blocks:
            builder.take(block)
