"""An LRU cache of track files, bounded by bytes: every hit is explained from its tracks."""

from __future__ import annotations

import threading
from collections import OrderedDict
from pathlib import Path

from wordreel.library.tracks import TrackFiles
from wordreel.types import Track

MAX_BYTES = 256 * 2**20


class CachedTrackFiles(TrackFiles):
    """Files are named by the hash of their content, so a cached one never goes stale."""

    def __init__(self, root: Path, max_bytes: int = MAX_BYTES) -> None:
        super().__init__(root)
        self._max, self._bytes = max_bytes, 0
        self._cached: OrderedDict[str, Track] = OrderedDict()
        self._lock = threading.Lock()

    def load(self, digest: str) -> Track:
        with self._lock:
            if digest in self._cached:
                self._cached.move_to_end(digest)
                return self._cached[digest]
        track = super().load(digest)
        with self._lock:
            if digest not in self._cached:
                self._cached[digest] = track
                self._bytes += track.values.nbytes
                while self._bytes > self._max:
                    _, gone = self._cached.popitem(last=False)
                    self._bytes -= gone.values.nbytes
        return track
