"""A video that is itself the question, from the library or from a file outside it, embedded like the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from wordreel.errors import QueryError
from wordreel.experts import registry
from wordreel.library.clips import SHOTS_EXPERT
from wordreel.library.extract import ExtractedFile, content_hash
from wordreel.library.store import LibraryStore
from wordreel.models.base import Model
from wordreel.search.embedding import tracks_of
from wordreel.types import Bool, Clip, Float32, Track

Study = Callable[[Path], ExtractedFile]


@dataclass(frozen=True, eq=False)
class VideoQuery:
    """`clips` of one video, the whole among them, with `vectors [clips, experts, dim]` and `available`."""

    name: str
    content: str  # empty for a file that is not in the library
    tracks: Mapping[str, Track]
    clips: tuple[Clip, ...]
    vectors: Float32
    available: Bool

    @staticmethod
    def of(
        model: Model, name: str, content: str, tracks: Mapping[str, Track], clips: tuple[Clip, ...]
    ) -> VideoQuery:
        vectors, available = model.embed(tracks, clips)
        if not available.any():
            raise QueryError(
                f"no expert that the model {model.name!r} looks at has anything to say about {name}; "
                f"it looks at {', '.join(model.track_experts)}"
            )
        shown = np.where(available[..., None], vectors, np.float32(0))
        return VideoQuery(name, content, tracks, clips, shown, available)

    def some(self, rows: list[int]) -> VideoQuery:
        """Only these clips."""
        return replace(
            self,
            clips=tuple(self.clips[row] for row in rows),
            vectors=self.vectors[rows],
            available=self.available[rows],
        )

    def at(self, second: float) -> VideoQuery:
        """Only the clip that holds a second."""
        end = max(clip.end for clip in self.clips)
        if not 0 <= second <= end:
            raise QueryError(f"{self.name} lasts {end:.1f} seconds; there is no second {second:g} in it")
        pieces = self.pieces()
        return self.some([next((row for row in pieces if second < self.clips[row].end), pieces[-1])])

    def pieces(self) -> list[int]:
        """The clips without the whole; the whole where it is all there is."""
        return [row for row, clip in enumerate(self.clips) if not clip.whole] or [0]


def encode_video(store: LibraryStore, model: Model, path: Path, study: Study) -> VideoQuery:
    """A file as a question. What the library knows, by path or by its bytes, is not decoded again."""
    known = store.file(path)
    content = known.content if known else _known_bytes(store, path)
    if content:
        clips = tuple(clip.clip for clip in store.clips(content))
        return VideoQuery.of(model, str(path), content, tracks_of(store, model, content), clips)
    found = study(path)
    wanted = model.track_experts
    tracks = {name: track for name, track in found.tracks.items() if name in wanted}
    return VideoQuery.of(model, str(path), "", tracks, found.clips)


def experts_for(store: LibraryStore, model: Model) -> list[str]:
    """Who must look at a file outside so that it can be compared with the library."""
    have = {str(name) for (name,) in store.catalogue.rows("SELECT DISTINCT expert FROM tracks")}
    able = [name for name in model.track_experts if name in registry.cards()]
    wanted = [name for name in able if name in have] if have else able
    if not wanted:
        raise QueryError(
            f"the model {model.name!r} looks at {', '.join(model.track_experts)}, imported features that "
            "wordreel cannot compute for a file; ask about an item of the library"
        )
    return [
        *wanted,
        *([SHOTS_EXPERT] if (SHOTS_EXPERT in have or not have) and SHOTS_EXPERT not in wanted else []),
    ]


def _known_bytes(store: LibraryStore, path: Path) -> str:
    """The content of a file that the library has under another name; empty if it has not."""
    try:
        content = content_hash(path) if store.has_content_of_size(path.stat().st_size) else ""
    except (OSError, ValueError) as error:
        raise QueryError(
            f"{path} is neither in the library nor a file that can be read: "
            f"{getattr(error, 'strerror', None) or error}"
        ) from error
    video = store.video(content) if content else None
    return content if video is not None and video.paths else ""
