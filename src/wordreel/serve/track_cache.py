"""An LRU cache of tracks, bounded by bytes: every hit is explained from its tracks."""

from __future__ import annotations

from collections.abc import Callable

from wordreel.types import Track
from wordreel.util.lru_cache import LRUCache

MAX_BYTES = 256 * 2**20


class TrackCache:
    """Loads tracks by hash. They are named by the hash of their bytes, so a cached one never goes stale."""

    def __init__(self, load: Callable[[str], Track], max_bytes: int = MAX_BYTES) -> None:
        self._load = load
        self._cached = LRUCache[str, Track](max_bytes, lambda track: track.values.nbytes)

    def __call__(self, digest: str) -> Track:
        track = self._cached.get(digest)
        if track is None:
            track = self._load(digest)
            self._cached.put(digest, track)
        return track
