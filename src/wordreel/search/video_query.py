"""A video as a query, from the library or from a file outside it, embedded like the rest."""

from __future__ import annotations

import threading
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from wordreel.catalogue.clips import SHOTS_EXPERT
from wordreel.catalogue.store import LibraryStore
from wordreel.embed.embed_library import tracks_of
from wordreel.errors import MediaError, QueryError
from wordreel.experts import registry
from wordreel.experts.base import Expert
from wordreel.ingest.extract import ExtractedFile, content_hash, extract_file
from wordreel.media import Fence
from wordreel.media.types import FrameNeed
from wordreel.models.base import Model
from wordreel.runtime.store import WeightStore
from wordreel.search.query import VideoMoment
from wordreel.types import Bool, Clip, Float32, Track
from wordreel.util.lru_cache import LRUCache

CACHED_FILES = 32


@dataclass(frozen=True, eq=False)
class VideoQuery:
    """The embedded clips of one video, the whole among them.

    `vectors [clips, experts, dim]` are zero where `available [clips, experts]` is false. `content` is empty
    for a file that is not in the library.
    """

    name: str
    content: str
    tracks: Mapping[str, Track]
    clips: tuple[Clip, ...]
    vectors: Float32
    available: Bool

    @staticmethod
    def of(
        model: Model, name: str, content: str, tracks: Mapping[str, Track], clips: tuple[Clip, ...]
    ) -> VideoQuery:
        """Return a query from the embeddings of a video's clips."""
        vectors, available = model.embed(tracks, clips)
        if not available.any():
            raise QueryError(
                f"{name} has no features that the model {model.name!r} can compare; "
                f"it reads {', '.join(model.track_experts)}"
            )
        return VideoQuery(
            name, content, tracks, clips, np.where(available[..., None], vectors, np.float32(0)), available
        )

    def some(self, rows: list[int]) -> VideoQuery:
        """Select only these clips."""
        return replace(
            self,
            clips=tuple(self.clips[row] for row in rows),
            vectors=self.vectors[rows],
            available=self.available[rows],
        )

    def at(self, second: float) -> VideoQuery:
        """Select only the clip at a second."""
        end = max(clip.end for clip in self.clips)
        if not 0 <= second <= end:
            raise QueryError(f"{self.name} lasts {end:.1f} seconds; there is no second {second:g} in it")
        pieces = self.pieces()
        return self.some([next((row for row in pieces if second < self.clips[row].end), pieces[-1])])

    def pieces(self) -> list[int]:
        """Return the clips without the whole; the whole where it is all there is."""
        return [row for row, clip in enumerate(self.clips) if not clip.whole] or [0]


def encode_video(
    store: LibraryStore, model: Model, video: VideoMoment, analyse: Callable[[Path, Model], ExtractedFile]
) -> VideoQuery:
    """Return a video as a query.

    What the library knows, by path or by its bytes, is not decoded again.
    """
    if video.path is None:
        query = _stored(store, model, str(video.content), str(video.content))
        if query is None:
            raise QueryError(f"there is no video {video.content} in the library", field="like")
    else:
        path = Path(video.path)
        known = store.file(path)
        content = known.content if known else _known_bytes(store, path)
        query = _stored(store, model, str(path), content) or _analysed(model, path, analyse)
    return query if video.second is None else query.at(video.second)


def _stored(store: LibraryStore, model: Model, name: str, content: str) -> VideoQuery | None:
    clips = tuple(clip.clip for clip in store.clips(content)) if content else ()
    return VideoQuery.of(model, name, content, tracks_of(store, model, content), clips) if clips else None


def _analysed(model: Model, path: Path, analyse: Callable[[Path, Model], ExtractedFile]) -> VideoQuery:
    file = analyse(path, model)
    wanted = model.track_experts
    tracks = {name: track for name, track in file.tracks.items() if name in wanted}
    return VideoQuery.of(model, str(path), "", tracks, file.clips)


class FileAnalyser:
    """Runs the experts of a library on files that are not in it; of a picture, only those that see.

    Experts load once, and the latest files are cached. With `fence`, all files are decoded behind it;
    otherwise each gets its own.
    """

    def __init__(self, store: LibraryStore, weights: WeightStore, fence: Fence | None = None) -> None:
        self._store, self._weights, self._fence = store, weights, fence
        self._experts: dict[str, Expert] = {}
        self._files = LRUCache[tuple[object, ...], ExtractedFile](CACHED_FILES)
        self._lock = threading.Lock()

    def __call__(self, path: Path, model: Model) -> ExtractedFile:
        """Run the experts on a file, or return what they found before."""
        names = experts_for(self._store, model, registry.cards(self._weights))
        if self._fence is not None:
            return self._analyse(path, names, self._fence)
        with Fence() as fence:
            return self._analyse(path, names, fence)

    def _analyse(self, path: Path, names: list[str], fence: Fence) -> ExtractedFile:
        try:
            still = fence.probe(path).kind == "image"
        except MediaError as error:
            raise type(error)(f"{path}: {error.message}", error.next_step) from error
        if still:
            names = [name for name in names if isinstance(registry.card(name, self._weights).need, FrameNeed)]
        stat = path.stat()
        key = (path, stat.st_mtime_ns, stat.st_size, *names)
        with self._lock:  # one file at a time: the networks take all cores anyway
            known = self._files.get(key)
            if known is None:
                for name in names:
                    if name not in self._experts:
                        self._experts[name] = registry.load(name, self._weights)
                known = extract_file(path, [self._experts[name] for name in names], fence)
                self._files.put(key, known)
            return known


def experts_for(store: LibraryStore, model: Model, known: Container[str]) -> list[str]:
    """Return the experts that make a file comparable with the library, of those that are `known`."""
    have = store.expert_names()
    able = [name for name in model.track_experts if name in known]
    wanted = [name for name in able if name in have] if have else able
    if not wanted:
        raise QueryError(
            f"the model {model.name!r} reads {', '.join(model.track_experts)}, imported features that "
            "wordreel cannot compute for a file; search with an item of the library"
        )
    shots = (SHOTS_EXPERT in have or not have) and SHOTS_EXPERT not in wanted
    return [*wanted, SHOTS_EXPERT] if shots else wanted


def _known_bytes(store: LibraryStore, path: Path) -> str:
    """Return the content of a file that the library has under another name; empty if it has not."""
    try:
        content = content_hash(path) if store.has_content_of_size(path.stat().st_size) else ""
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise QueryError(f"{path} is neither in the library nor a file that can be read: {reason}") from error
    video = store.video(content) if content else None
    return content if video is not None and video.paths else ""
