"""Videos and pictures that are themselves the question."""

from __future__ import annotations

import threading
from pathlib import Path

from wordreel.api import Library
from wordreel.experts import registry
from wordreel.experts.base import Expert
from wordreel.library.extract import ExtractedFile, extract_file
from wordreel.library.store import LibraryStore
from wordreel.lru_cache import LRUCache
from wordreel.media import Fence
from wordreel.media.types import FrameNeed
from wordreel.models.base import Model
from wordreel.search.embedding import tracks_of
from wordreel.search.video_query import Study, VideoQuery, encode_video, experts_for
from wordreel.serve.problems import Problem

REMEMBERED = 32


class OwnExperts:
    """Looks at a file with the library's experts; of a picture, with those that see. Loaded once."""

    def __init__(self, library: Library, fence: Fence) -> None:
        self._library, self._fence = library, fence
        self._loaded: dict[str, Expert] = {}
        self._lock = threading.Lock()

    def __call__(self, path: Path) -> ExtractedFile:
        still = self._fence.probe(path).kind == "image"
        names = experts_for(self._library.store, self._library.model)
        if still:
            names = [name for name in names if isinstance(registry.card(name).need, FrameNeed)]
        with self._lock:  # one file at a time: the networks take all cores anyway
            for name in names:
                if name not in self._loaded:
                    self._loaded[name] = registry.load(name, self._library.weights)
            return extract_file(path, [self._loaded[name] for name in names], self._fence)


class Samples:
    """Questions by content, embedded by the model that answers; the latest from outside are remembered."""

    def __init__(self, store: LibraryStore, study: Study) -> None:
        self._store, self._study = store, study
        self._latest = LRUCache[tuple[str, str], VideoQuery](REMEMBERED)

    def known(
        self, model: Model, content: str, start: float | None = None, end: float | None = None
    ) -> VideoQuery:
        """A video of the library, or its clip in the middle of a moment."""
        clips = tuple(clip.clip for clip in self._store.clips(content))
        if not clips:
            raise Problem(404, "not_found", "there is no such video in the library; see /api/videos")
        sample = VideoQuery.of(model, content, content, tracks_of(self._store, model, content), clips)
        if start is None:
            return sample
        return sample.at((start + end) / 2 if end is not None and end > start else start)

    def outside(self, model: Model, content: str, path: Path) -> VideoQuery:
        """An upload."""
        key = (model.fingerprint, content)
        known = self._latest.get(key)
        if known is None:
            known = encode_video(self._store, model, path, self._study)
            self._latest.put(key, known)
        return known
