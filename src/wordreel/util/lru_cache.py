"""A thread-safe LRU cache."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


def _one(value: object) -> int:
    return 1


class LRUCache(Generic[K, V]):
    """Hold values up to `capacity`, and evict the least recently used ones.

    Each counts for its `size`, by default 1; one that is larger than the capacity is not held.

    >>> cache = LRUCache[str, int](2)
    >>> cache.put("a", 1), cache.put("b", 2), cache.get("a"), cache.put("c", 3), cache.get("b")
    (None, None, 1, None, None)
    """

    def __init__(self, capacity: int, size: Callable[[V], int] = _one) -> None:
        self._capacity, self._size, self._held = capacity, size, 0
        self._values: OrderedDict[K, V] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: K) -> V | None:
        """Return the value of a key, and mark it as used; None where there is none."""
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key]

    def get_many(self, keys: Iterable[K]) -> dict[K, V | None]:
        """Return each key with its value, None where there is none."""
        with self._lock:
            values = {key: self._values.get(key) for key in keys}
            for key, value in values.items():
                if value is not None:
                    self._values.move_to_end(key)
        return values

    def put(self, key: K, value: V) -> None:
        """Store a value, and evict others until there is room for it."""
        with self._lock:
            if key in self._values:
                self._held -= self._size(self._values.pop(key))
            self._values[key] = value
            self._held += self._size(value)
            while self._held > self._capacity:
                self._held -= self._size(self._values.popitem(last=False)[1])

    def __len__(self) -> int:
        return len(self._values)
