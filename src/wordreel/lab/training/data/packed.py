"""Arrays of different lengths end to end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wordreel.types import Array, Int64


@dataclass(frozen=True)
class Packed:
    """Item i is `values[starts[i] : starts[i] + counts[i]]`; with times, those of its rows (NaN: unknown)."""

    values: Array  # [total, ...]
    counts: Int64  # [items]
    times: NDArray[np.float32] | None = None  # [total]

    @property
    def starts(self) -> Int64:
        return np.concatenate([[0], np.cumsum(self.counts)[:-1]]).astype(np.int64)

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def longest(self) -> int:
        return int(self.counts.max(initial=0))

    def item(self, number: int) -> Array:
        start = int(self.counts[:number].sum())
        return self.values[start : start + int(self.counts[number])]

    def take(self, items: Sequence[int]) -> Packed:
        """Only these items, in this order.

        >>> pack([np.array([1, 2]), np.array([3])]).take([1]).values.tolist()
        [3]
        """
        starts = self.starts
        index = [np.arange(starts[n], starts[n] + self.counts[n]) for n in items]
        rows = np.concatenate([np.zeros(0, np.int64), *index])
        times = None if self.times is None else self.times[rows]
        return Packed(self.values[rows], self.counts[list(items)], times)


def pack(rows: Sequence[Array], times: Sequence[Array] | None = None, like: Array | None = None) -> Packed:
    """
    >>> packed = pack([np.array([1, 2]), np.array([3])])
    >>> packed.values.tolist(), packed.item(1).tolist()
    ([1, 2, 3], [3])
    """
    counts = np.array([len(row) for row in rows], np.int64)
    held = [row for row in rows if len(row)]
    empty = like[:0] if like is not None else np.zeros(0, np.float32)
    values = np.concatenate(held) if held else empty
    when = None
    if times is not None:
        some = [time for time in times if len(time)]
        when = np.concatenate(some).astype(np.float32) if some else np.zeros(0, np.float32)
    return Packed(values, counts, when)


def concatenate(parts: Sequence[Packed]) -> Packed:
    """All items of all parts, in order."""
    filled = [part for part in parts if len(part.values)] or list(parts[:1])
    timed = all(part.times is not None for part in filled)
    return Packed(
        np.concatenate([part.values for part in filled]),
        np.concatenate([part.counts for part in parts]),
        np.concatenate([part.times for part in filled if part.times is not None]) if timed else None,
    )
