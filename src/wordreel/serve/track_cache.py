"""An LRU cache of tracks, bounded by bytes: every hit is explained from its tracks."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

from wordreel.types import Track

MAX_BYTES = 256 * 2**20


class TrackCache:
    """Loads tracks by hash. They are named by the hash of their bytes, so a cached one never goes stale."""

    def __init__(self, load: Callable[[str], Track], max_bytes: int = MAX_BYTES) -> None:
        self._load = load
        self._max, self._bytes = max_bytes, 0
        self._cached: OrderedDict[str, Track] = OrderedDict()
        self._lock = threading.Lock()

    def __call__(self, digest: str) -> Track:
        with self._lock:
            if digest in self._cached:
                self._cached.move_to_end(digest)
                return self._cached[digest]
        track = self._load(digest)
        with self._lock:
            if digest not in self._cached:
                self._cached[digest] = track
                self._bytes += track.values.nbytes
                while self._bytes > self._max:
                    _, gone = self._cached.popitem(last=False)
                    self._bytes -= gone.values.nbytes
        return track
