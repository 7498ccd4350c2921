"""Memory that the loader and its workers share: slots for batches, and a cache of decoded videos. No torch.

A region without a name: it is passed to workers as a file descriptor and is gone with the last process that
holds it, however that one ends.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Uint8 = NDArray[np.uint8]
PAGE = 4096


@dataclass(frozen=True)
class FrameMemoryLayout:
    """Sizes of the regions. A row of a slot holds up to `most` frames of one video."""

    slots: int
    batch: int
    most: int
    size: int  # pixels of a frame's side
    workers: int
    items: int
    cache_bytes: int

    @property
    def frame_bytes(self) -> int:
        return 3 * self.size * self.size

    @property
    def slot_bytes(self) -> int:
        return _pages(self.batch * self.most * self.frame_bytes)

    @property
    def total(self) -> int:
        return self._cache_at + _pages(self.cache_bytes)

    @property
    def _cached_at(self) -> int:
        return _pages(4 * self.slots * self.batch)

    @property
    def _current_at(self) -> int:
        return self._cached_at + _pages(4 * self.items)

    @property
    def slots_at(self) -> int:
        return self._current_at + _pages(8 * self.workers)

    @property
    def _cache_at(self) -> int:
        return self.slots_at + self.slots * self.slot_bytes

    def to_json(self) -> dict[str, int]:
        return asdict(self)


class FrameMemory:
    """Arrays over the shared region.

    `counts [slots, batch]` are the frames of each row (0: the file could not be read), `cached [items]` those
    of each video in the cache, `current [workers]` the item that a worker is at (-1: none).
    """

    def __init__(self, layout: FrameMemoryLayout, descriptor: int | None = None) -> None:
        self.layout = layout
        self.descriptor = _create(layout.total) if descriptor is None else descriptor
        self._map = mmap.mmap(self.descriptor, layout.total)
        self.bytes: Uint8 = np.frombuffer(self._map, np.uint8)
        self.counts = self._array(0, np.int32, layout.slots, layout.batch)
        self.cached = self._array(layout._cached_at, np.int32, layout.items)
        self.current = self._array(layout._current_at, np.int64, layout.workers)

    def _array(self, at: int, kind: Any, *shape: int) -> NDArray[Any]:
        count = int(np.prod(shape))
        end = at + count * np.dtype(kind).itemsize
        array: NDArray[Any] = self.bytes[at:end].view(kind).reshape(shape)
        return array

    def slot(self, number: int, rows: int, frames: int) -> Uint8:
        """`[rows, frames, size, size, 3]` of one slot."""
        layout = self.layout
        at = layout.slots_at + number * layout.slot_bytes
        end = at + rows * frames * layout.frame_bytes
        return self.bytes[at:end].reshape(rows, frames, layout.size, layout.size, 3)

    def cache(self, offset: int, frames: int) -> Uint8:
        """`[frames, size, size, 3]` of the cache."""
        layout = self.layout
        at = layout._cache_at + offset
        return self.bytes[at : at + frames * layout.frame_bytes].reshape(frames, layout.size, layout.size, 3)

    def close(self) -> None:
        """Give the memory back once no array refers to it."""
        os.close(self.descriptor)


def _create(size: int) -> int:
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("wordreel-frames")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, size)
    return descriptor


def _pages(size: int) -> int:
    return -(-max(1, size) // PAGE) * PAGE
