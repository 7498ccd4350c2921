"""Track files kept in memory: every hit is explained from them, and the same videos are found again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from pathlib import Path

from wordreel.library.tracks import TrackFiles
from wordreel.types import Track

MOST_BYTES = 256 * 2**20


class RememberedTracks(TrackFiles):
    """A file is named by the hash of what is in it, so what was read once stays right."""

    def __init__(self, root: Path, most_bytes: int = MOST_BYTES) -> None:
        super().__init__(root)
        self._most, self._bytes = most_bytes, 0
        self._kept: OrderedDict[str, Track] = OrderedDict()
        self._lock = threading.Lock()

    def load(self, digest: str) -> Track:
        with self._lock:
            if digest in self._kept:
                self._kept.move_to_end(digest)
                return self._kept[digest]
        track = super().load(digest)
        with self._lock:
            if digest not in self._kept:
                self._kept[digest] = track
                self._bytes += track.values.nbytes
                while self._bytes > self._most:
                    _, gone = self._kept.popitem(last=False)
                    self._bytes -= gone.values.nbytes
        return track
