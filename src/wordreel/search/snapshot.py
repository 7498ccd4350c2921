"""`LibrarySnapshot`: what a model can find in a library, as it was at one moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from wordreel.index.exact import ExactIndex
from wordreel.library.embeddings import Gallery
from wordreel.library.records import StoredClip, StoredFile, VideoFacts
from wordreel.library.store import LibraryStore
from wordreel.models.base import Model
from wordreel.search.embedding import embedding_cache
from wordreel.search.segments import Scores, concat_segments, segment_argmax, segment_max
from wordreel.types import Int64


@dataclass(frozen=True, eq=False)
class LibrarySnapshot:
    """The embedded items of a library, row by row of `gallery`. Clips and whole videos are items alike."""

    store: LibraryStore
    items: Sequence[StoredClip]
    gallery: Gallery
    files: Sequence[StoredFile]  # of all videos that can be found, by path

    @classmethod
    def take(cls, store: LibraryStore, model: Model) -> LibrarySnapshot:
        """The library now, as far as the model has embedded it."""
        known = {clip.id: clip for clip in store.clips()}
        gallery = embedding_cache(store, model).load()
        # Another process may add or remove videos between the two reads: use only what both returned.
        if not all(int(number) in known for number in gallery.ids):
            both = np.isin(gallery.ids, list(known))
            gallery = Gallery(gallery.ids[both], gallery.vectors[both], gallery.available[both])
        items = [known[int(number)] for number in gallery.ids]
        contents = {item.content for item in items}
        return cls(store, items, gallery, [file for file in store.files() if file.content in contents])

    def __len__(self) -> int:
        return len(self.items)

    @cached_property
    def index(self) -> ExactIndex:
        return ExactIndex(self.gallery.vectors, self.gallery.available)

    @cached_property
    def rows_by_content(self) -> Mapping[str, list[int]]:
        """The rows of each video's items."""
        rows: dict[str, list[int]] = {}
        for row, item in enumerate(self.items):
            rows.setdefault(item.content, []).append(row)
        return rows

    def rows(self, content: str) -> list[int]:
        """The rows of one video's items."""
        return self.rows_by_content[content]

    def clip_rows(self, content: str) -> list[int]:
        """The rows of one video's clips; of its whole where it has no clips."""
        rows = self.rows(content)
        return [row for row in rows if not self.items[row].whole] or rows

    def __contains__(self, content: str) -> bool:
        return content in self.rows_by_content

    def contents(self) -> list[str]:
        """Every video that can be found, in the order of the columns of `Searcher.scores`."""
        return list(self.rows_by_content)

    def facts(self) -> Mapping[str, VideoFacts]:
        """What filters ask of every video; read once."""
        return self._facts

    @cached_property
    def _facts(self) -> Mapping[str, VideoFacts]:
        return self.store.video_facts()

    def best_items(self, items: Scores) -> Scores:
        """Scores `[texts, items]` to `[texts, videos]`, by the best item of each video."""
        order, starts = self._by_video
        return segment_max(items[:, order], starts)

    def best_rows(self, items: Scores) -> Int64:
        """Scores `[texts, items]` to rows `[texts, videos]`: the best item of each video, first of equals."""
        order, starts = self._by_video
        return np.asarray(order[segment_argmax(items[:, order], starts)[1]], np.int64)

    @cached_property
    def _by_video(self) -> tuple[Int64, Int64]:
        """The rows of all items, video by video, and where each video starts."""
        return concat_segments(self.rows_by_content.values())

    def coverage(self, experts: Sequence[str], contents: Sequence[str]) -> dict[str, float]:
        """The share of these videos that each expert has features of."""
        present = np.array([self.gallery.available[self.rows(content)].any(axis=0) for content in contents])
        return dict(zip(experts, present.mean(axis=0).round(4).tolist(), strict=True))
