"""Arrays of different lengths end to end, and where a dataset of such arrays fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wordreel.types import Array, Int64

FREE_SHARE = 0.6  # of the device's free memory may be filled with features


@dataclass(frozen=True)
class Packed:
    """Item i is `values[starts[i] : starts[i] + counts[i]]`; with times, those of its rows (NaN: unknown)."""

    values: Array  # [total, ...]
    counts: Int64  # [items]
    times: NDArray[np.float32] | None = None  # [total]

    @property
    def starts(self) -> Int64:
        """Return where the rows of each item begin."""
        return np.concatenate([[0], np.cumsum(self.counts)[:-1]]).astype(np.int64)

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def longest(self) -> int:
        """Return the most rows of an item."""
        return int(self.counts.max(initial=0))

    def item(self, number: int) -> Array:
        """Return the rows of one item."""
        start = int(self.counts[:number].sum())
        return self.values[start : start + int(self.counts[number])]

    def take(self, items: Sequence[int]) -> Packed:
        """Return only these items, in this order.

        >>> pack([np.array([1, 2]), np.array([3])]).take([1]).values.tolist()
        [3]
        """
        starts = self.starts
        index = [np.arange(starts[n], starts[n] + self.counts[n]) for n in items]
        rows = np.concatenate([np.zeros(0, np.int64), *index])
        times = None if self.times is None else self.times[rows]
        return Packed(self.values[rows], self.counts[list(items)], times)


def pack(rows: Sequence[Array], times: Sequence[Array] | None = None, like: Array | None = None) -> Packed:
    """Return arrays end to end, of the kind of `like` where there are none.

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


def pack_rows(rows: Sequence[tuple[Array, Array] | None]) -> Packed:
    """Return rows `[n, dim]` with their times `[n]` end to end; None for an item that has none."""
    dim = next((values.shape[1] for values, _ in filter(None, rows)), 1)
    empty = np.zeros((0, dim), np.float32), np.zeros(0, np.float32)
    values, times = zip(*(item or empty for item in rows), strict=True) if rows else ((), ())
    return pack(values, times, empty[0])


def concatenate(parts: Sequence[Packed]) -> Packed:
    """Return all items of all parts, in order."""
    filled = [part for part in parts if len(part.values)] or list(parts[:1])
    timed = all(part.times is not None for part in filled)
    return Packed(
        np.concatenate([part.values for part in filled]),
        np.concatenate([part.counts for part in parts]),
        np.concatenate([part.times for part in filled if part.times is not None]) if timed else None,
    )


def device_for(size: int, device: torch.device) -> torch.device:
    """Return the device if that many bytes fit, else the host's memory."""
    if device.type != "cuda":
        return torch.device("cpu")
    free, _ = torch.cuda.mem_get_info(device)
    return device if size < FREE_SHARE * free else torch.device("cpu")


class StoredRows:
    """Packed arrays as tensors that batches are gathered from by number, on the device if they fit.

    `values [rows + 1, …]` ends with a row of zeros. The counts on the host size batches without a
    synchronisation.
    """

    def __init__(self, packed: Packed, device: torch.device, storage_device: torch.device) -> None:
        self.device, self.storage_device = device, storage_device
        self.longest, self.host_counts = packed.longest, packed.counts
        zero = np.zeros((1, *packed.values.shape[1:]), packed.values.dtype)
        values = torch.from_numpy(np.concatenate([packed.values, zero]))
        self.values = self.put(values.float() if values.is_floating_point() else values.int())
        self.starts = torch.from_numpy(packed.starts).to(storage_device)
        self.counts = torch.from_numpy(packed.counts).to(storage_device)

    def put(self, x: Tensor) -> Tensor:
        """Return a tensor where the values lie; the host's memory is pinned for a GPU."""
        pinned = self.storage_device != self.device and self.device.type == "cuda"
        return x.pin_memory() if pinned else x.to(self.storage_device)

    def most(self, items: Tensor) -> int:
        """Return how many rows an item has at most: one of these, where that is known on the host."""
        if items.device.type == "cpu":
            return int(self.host_counts[items.numpy()].max(initial=0))
        return self.longest

    def rows(self, items: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Return the numbers of the rows at these positions of each item, and which exist, both `[b, n]`."""
        mask = positions < self.counts[items][:, None]
        return torch.where(mask, self.starts[items][:, None] + positions, len(self.values) - 1), mask

    def gather(self, rows: Tensor) -> Tensor:
        """Return the values of rows `[b, n]`, `[b, n, …]`."""
        return self.values.index_select(0, rows.flatten()).view(*rows.shape, *self.values.shape[1:])
