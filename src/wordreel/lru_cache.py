"""A thread-safe LRU cache."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class LRUCache(Generic[K, V]):
    """Holds up to `capacity` values and evicts the least recently used one.

    >>> cache = LRUCache[str, int](2)
    >>> cache.put("a", 1), cache.put("b", 2), cache.get("a"), cache.put("c", 3), cache.get("b")
    (None, None, 1, None, None)
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._values: OrderedDict[K, V] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: K) -> V | None:
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key]

    def put(self, key: K, value: V) -> None:
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            if len(self._values) > self._capacity:
                self._values.popitem(last=False)

    def __len__(self) -> int:
        return len(self._values)
