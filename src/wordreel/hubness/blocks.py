"""Similarities read block by block: checked once, in pieces that stay in the cache.

Rows are queries, columns are gallery items. float16 is widened to float32, float64 stays; other numbers
become float64. NaN, infinities and sizes beyond 1e30 are refused, so everything computed after this point
is finite. What comes in is never written to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol, TypeVar

import numpy as np

from wordreel.errors import HubnessError
from wordreel.types import Array, Int64
from wordreel.util.machine import cores

T = TypeVar("T")

# A block and a scratch copy stay in the caches, while each call into NumPy is long enough for
# threads not to wait for each other.
BLOCK_VALUES = 3 << 18
MOST_ROWS = 256
BATCH_VALUES = 4 << 20  # similarities that a source gives at once
SHORT_BUFFER = 1024  # numbers
LARGEST = 1e30


class SimilaritySource(Protocol):
    """Rows that can be read in any order and more than once."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def read(self, start: int, stop: int) -> Array:
        """Return rows `[start, stop)`."""
        ...


Similarities = Array | SimilaritySource | Iterable[Array]


@dataclass(frozen=True)
class SimilarityBlock:
    """Some checked rows, with what the check had to find out anyway."""

    values: Array  # [rows, items] float32 or float64, contiguous
    tops: Int64  # [rows] the best item, the first of equals
    best: Array  # [rows] its similarity
    low: float
    high: float

    def __len__(self) -> int:
        return len(self.values)

    @property
    def max_abs(self) -> float:
        return max(-self.low, self.high)


@dataclass(frozen=True)
class ArraySource:
    """An array, perhaps memory-mapped."""

    rows: Array

    @property
    def shape(self) -> tuple[int, ...]:
        return self.rows.shape

    def read(self, start: int, stop: int) -> Array:
        return self.rows[start:stop]


def matrix(rows: Array, what: str, items: int | None = None) -> Array:
    """Return `rows` if it is a non-empty numeric matrix with `items` columns."""
    rows = rows if isinstance(rows, np.ndarray) else np.asarray(rows)
    if rows.ndim != 2:
        raise HubnessError(f"{what} must be a matrix [queries, items], not of shape {rows.shape}")
    if rows.dtype.kind not in "fiu":
        raise HubnessError(f"{what} must hold real numbers, not {rows.dtype}")
    if rows.shape[1] == 0:
        raise HubnessError(f"{what} has no columns: the gallery is empty")
    if items is not None and rows.shape[1] != items:
        raise HubnessError(
            f"{what} has {rows.shape[1]} columns but the gallery has {items} items; rows are queries and "
            "columns are gallery items, so transpose it if it is the other way round"
        )
    return rows


def widen(values: Array) -> Array:
    """Widen float16 to float32, and all but float32 to float64; copy only where that is needed."""
    small = values.dtype.kind == "f" and values.dtype.itemsize <= 4
    return np.ascontiguousarray(values, np.float32 if small else np.float64)


def check(values: Array, first: int = 0) -> SimilarityBlock:
    """Widen some rows and refuse what is not a similarity; `first` is the number of the first row."""
    values = widen(values)
    tops = values.argmax(axis=1)
    best = values[np.arange(len(values)), tops]
    # argmax stops at NaN and min passes it on, so the two bounds tell NaN and both infinities.
    low, high = float(values.min()), float(best.max())
    if not (low >= -LARGEST and high <= LARGEST):
        row, column = np.argwhere(~(np.abs(values) <= LARGEST))[0]
        raise HubnessError(
            f"the similarity in row {first + row}, column {column} is {values[row, column]}; "
            "leave out or mend the embeddings that are not finite"
        )
    return SimilarityBlock(values, tops, best, low, high)


def block_rows(items: int) -> int:
    """Return the number of rows of a block."""
    return int(np.clip(BLOCK_VALUES // items, 1, MOST_ROWS))


def cut(values: Array) -> Iterator[Array]:
    """Yield pieces of some rows, small enough for the cache."""
    rows = block_rows(values.shape[1])
    for start in range(0, len(values), rows):
        yield values[start : start + rows]


def as_source(blocks: Similarities, what: str = "the bank") -> SimilaritySource | None:
    """Return a source for an array or a source; None for a plain stream."""
    if isinstance(blocks, np.ndarray):
        return ArraySource(matrix(blocks, what))
    return blocks if hasattr(blocks, "read") else None  # type: ignore[return-value]


def row_batches(blocks: Similarities, items: int | None = None) -> Iterator[Array]:
    """Yield the rows of a bank in order: an array at once, a source 16 MB at a time, a stream as it comes.

    Raises:
        HubnessError: It is not a matrix of `items` columns, where that is given.
    """
    source = as_source(blocks)
    if source is None:
        for rows in _stream(blocks):
            rows = matrix(rows, "a block of the bank", items)
            items = rows.shape[1]
            yield rows
        return
    if len(source.shape) != 2 or source.shape[1] == 0:
        raise HubnessError(f"the bank must be a matrix [queries, items], not of shape {source.shape}")
    count, columns = source.shape
    if items is not None and columns != items:
        raise HubnessError(f"the bank has {columns} columns but the gallery has {items} items")
    step = count if isinstance(source, ArraySource) else BATCH_VALUES // columns
    for start in range(0, count, max(1, step)):
        yield np.asarray(source.read(start, min(start + max(1, step), count)))


def _stream(blocks: Similarities) -> Iterator[Array]:
    try:
        return iter(blocks)  # type: ignore[arg-type]
    except TypeError:
        raise HubnessError("a bank is a matrix, or row blocks of one, one after the other") from None


def spans(rows: int, threads: int) -> list[tuple[int, int]]:
    """Return `threads` neighbouring spans that cover the rows in order."""
    edges = np.linspace(0, rows, threads + 1).astype(int)
    return [(int(a), int(b)) for a, b in pairwise(edges) if b > a]


def thread_count(threads: int | None, elements: int) -> int:
    """Return a number of threads: one for small work, else `threads` or the cores of this process."""
    if elements < 1 << 20:
        return 1
    if threads is not None:
        return max(1, threads)
    return cores()


def each_span(shape: tuple[int, ...], work: Callable[[int, int], T], threads: int | None) -> list[T]:
    """Run `work(start, stop)` over spans of the rows of a `[rows, items]` matrix, in threads, in order."""
    rows, items = shape
    parts = spans(rows, thread_count(threads, rows * items))

    def buffered(span: tuple[int, int]) -> T:
        with short_buffers():
            return work(*span)

    if len(parts) == 1:
        return [buffered(parts[0])]
    with ThreadPoolExecutor(len(parts)) as pool:
        return list(pool.map(buffered, parts))


@contextmanager
def short_buffers() -> Iterator[None]:
    """Let NumPy work on rows where they are, for this thread.

    It copies an operand that is broadcast, such as one offset per item, into a buffer wherever the buffer
    is longer than a row: that takes longer than the arithmetic.
    """
    before = np.setbufsize(SHORT_BUFFER)
    try:
        yield
    finally:
        np.setbufsize(before)


def blocks_of(
    source: SimilaritySource, start: int, stop: int, first: int = 0
) -> Iterator[tuple[int, SimilarityBlock]]:
    """Yield checked blocks of rows `[start, stop)` with the number of their first row.

    Errors number the rows from `first`.
    """
    step = BATCH_VALUES // source.shape[1]
    rows = block_rows(source.shape[1]) if isinstance(source, ArraySource) else max(1, step)
    for at in range(start, stop, rows):
        row = at
        for piece in cut(source.read(at, min(at + rows, stop))):
            yield row, check(piece, first + row)
            row += len(piece)
