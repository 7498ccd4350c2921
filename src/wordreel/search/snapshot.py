"""`LibrarySnapshot`: what a model can find in a library, as it was at one moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from wordreel.catalogue.files import FileConditions, first_files
from wordreel.catalogue.paths import VERIFY
from wordreel.catalogue.store import LibraryStore
from wordreel.embed.columns import ClipColumns
from wordreel.embed.embed_library import embedding_cache
from wordreel.embed.embedding_cache import Gallery
from wordreel.errors import LibraryError
from wordreel.index.base import Index
from wordreel.index.cached import BuiltIndex, IndexCache, builder_for
from wordreel.index.exact import ExactIndex
from wordreel.models.base import Model
from wordreel.search.filters import Filters
from wordreel.search.sample import VideoSample, draw_sample
from wordreel.search.segments import Scores, distinct, segment_argmax, segment_max, take_segments
from wordreel.search.words.lexical import TermMatches
from wordreel.search.words.passing_videos import PassingVideos
from wordreel.types import Bool, Int64
from wordreel.util.lru_cache import LRUCache
from wordreel.util.server_address import ServerAddress

CACHED_FILTERS = 16
CACHED_TERMS = 32 * 2**20  # bytes, of where the words of queries are said and shown


@dataclass(frozen=True, eq=False)
class LibrarySnapshot:
    """The embedded items of a library, row by row of `gallery`. Clips and whole videos are items alike.

    Rows are memory-mapped, and those of clips that have left the library stay among them: `live` says which
    rows count. Nothing here is read or computed for every item before something asks for it.
    """

    store: LibraryStore
    gallery: Gallery
    columns: ClipColumns
    indexes: IndexCache
    model: Model
    server: ServerAddress | None = None
    resident: bool = False  # in a program that answers many queries
    _filtered: LRUCache[Filters, PassingVideos] = field(
        default_factory=lambda: LRUCache(CACHED_FILTERS), repr=False
    )
    _terms: LRUCache[str, tuple[tuple[int, int], TermMatches]] = field(
        default_factory=lambda: LRUCache(CACHED_TERMS, lambda known: known[1].nbytes), repr=False
    )

    @classmethod
    def take(
        cls, store: LibraryStore, model: Model, server: ServerAddress | None = None, resident: bool = False
    ) -> LibrarySnapshot:
        """Return the library now, as far as it is embedded, searched by a server if one is given."""
        gallery, columns = embedding_cache(store, model).open()
        indexes = index_cache(store, model, gallery)
        return cls(store, gallery, columns, indexes, model, server, resident)

    def __len__(self) -> int:
        """Return the number of items that can be found."""
        return len(self.columns) - len(self.columns.dead)

    @property
    def live(self) -> Bool:
        """`[rows]`: whether the item is in the library."""
        return self.columns.live

    @property
    def items(self) -> ClipColumns:
        """The clip of each row; those of rows that are not live mean nothing."""
        return self.columns

    @cached_property
    def index(self) -> Index:
        """The server's; else the one that fits the size of the library, if it is built; else a scan."""
        return self.opened_index.index

    @cached_property
    def opened_index(self) -> OpenedIndex:
        """The index, and what was measured of it."""
        if self.server is not None:
            from wordreel.search.server_index import open_server_index

            return OpenedIndex(
                open_server_index(self.server, self.store, self.model, self.gallery), len(self)
            )
        return open_index(self.gallery, self.indexes, self.resident)

    @cached_property
    def sample(self) -> VideoSample:
        """The videos that stand for all of them where a query is judged by what competes for it."""
        return draw_sample(self)

    # Videos

    @property
    def video(self) -> Int64:
        """`[rows]`: the number of each item's video."""
        return np.asarray(self.columns.video)

    def __contains__(self, content: str) -> bool:
        return len(self.rows(content)) > 0

    def rows(self, content: str) -> Int64:
        """Return the rows of one video's items, in order."""
        return self.video_rows(int(self.columns.numbers([content])[0]))

    def video_rows(self, number: int) -> Int64:
        """Return the rows of a video, by its number."""
        order, starts, numbers = self._by_video
        at = int(np.searchsorted(numbers, number))
        if at == len(numbers) or numbers[at] != number:
            return np.zeros(0, np.int64)
        return order[starts[at] : starts[at + 1]]

    def video_places(self, numbers: Int64) -> tuple[Int64, Bool]:
        """Return the place of each of these videos among `video_numbers`, and whether it has one."""
        at = np.searchsorted(self.video_numbers, numbers)
        known = at < len(self.video_numbers)
        known[known] = self.video_numbers[at[known]] == numbers[known]
        return at, known

    def video_numbers_of(self, contents: Sequence[str]) -> Int64:
        """Return the number of each content's video, -1 where there is none; contents may come many times."""
        each = list(dict.fromkeys(contents))
        numbers = dict(zip(each, self.columns.numbers(each).tolist(), strict=True))
        return np.array([numbers[content] for content in contents], np.int64)

    def overlapping_rows(
        self, videos: Int64, starts: Sequence[float], ends: Sequence[float], wholes: bool = True
    ) -> Int64:
        """Return the rows of the items that overlap some moments of `videos`, by number, each once, in order.

        A whole video overlaps all of its moments; without `wholes` it counts only where it has no clips.
        """
        order, edges = self.segments
        at, known = self.video_places(videos)
        at = at[known]
        try:
            first, last = (np.array(times, np.float64)[known] for times in (starts, ends))
        except ValueError as error:
            raise LibraryError(f"the times of some words are damaged ({error})", VERIFY) from None
        # The rows of each moment's video, one after the other: moment `of[i]` may overlap item `rows[i]`.
        rows, _ = take_segments(order, edges, at)
        sizes = edges[at + 1] - edges[at]
        of = np.repeat(np.arange(len(at)), sizes)
        clips = self.columns.clips[rows]
        overlaps = (first[of] < clips["end"]) & (last[of] > clips["start"])
        whole = clips["whole"] != 0
        chosen = overlaps | whole if wholes else (overlaps & ~whole) | (whole & (sizes[of] == 1))
        return distinct(rows[chosen])

    def clip_rows(self, content: str) -> Int64:
        """Return the rows of one video's clips; of its whole where it has no clips."""
        rows = self.rows(content)
        clips = rows[self.columns.clips["whole"][rows] == 0]
        return clips if len(clips) else rows

    def moment_places(self, rows: Int64) -> Int64:
        """Return where among some rows the moments are.

        Moments are clips, and whole videos that have no clips.
        """
        whole, video = self.columns.clips["whole"][rows], self.video[rows]
        chosen = whole == 0
        for at in np.flatnonzero(~chosen).tolist():
            chosen[at] = len(self.video_rows(int(video[at]))) == 1
        return np.flatnonzero(chosen)

    def video_count(self) -> int:
        """Return how many videos can be found."""
        return len(self._by_video[2])

    def contents(self) -> list[str]:
        """Return every video that can be found, in the order of the columns of `Searcher.scores`."""
        return [self.columns.content(number) for number in self._by_video[2].tolist()]

    def passing(self, filters: Filters) -> PassingVideos:
        """Return the videos that a search may return; evaluated once for each `filters`."""
        if not filters.lasting:
            return PassingVideos.of(self, filters)
        known = self._filtered.get(filters)
        if known is None:
            known = PassingVideos.of(self, filters)
            self._filtered.put(filters, known)
        return known

    def term_matches(self, terms: Sequence[str]) -> dict[str, TermMatches]:
        """Return where each word of a query is spoken, on screen or noted, cached until a write."""
        version, matches = self.store.version(), {}
        for term in terms:
            known = self._terms.get(term)
            if known is None or known[0] != version:
                known = version, TermMatches.find(self, term)
                self._terms.put(term, known)
            matches[term] = known[1]
        return matches

    def best_items(self, items: Scores) -> Scores:
        """Reduce scores `[texts, rows]` to `[texts, videos]`, by the best item of each video."""
        order, starts, _ = self._by_video
        return segment_max(items[:, order], starts[:-1])

    def best_rows(self, items: Scores) -> Int64:
        """Reduce scores `[texts, rows]` to rows `[texts, videos]`.

        Take the best item of each video, the first of equals.
        """
        order, starts, _ = self._by_video
        return np.asarray(order[segment_argmax(items[:, order], starts[:-1])[1]], np.int64)

    @property
    def segments(self) -> tuple[Int64, Int64]:
        """The rows of all items, video by video, and where each video starts and the last one ends."""
        return self._by_video[:2]

    @cached_property
    def _by_video(self) -> tuple[Int64, Int64, Int64]:
        """`segments`, and the number of each video."""
        video = self.columns.video
        rows = np.flatnonzero(self.live) if len(self.columns.dead) else np.arange(len(video))
        video = video[rows]
        if (np.diff(video) < 0).any():  # nearly always, the items of a video were embedded together
            order = np.argsort(video, kind="stable")
            rows, video = rows[order], video[order]
        first = np.flatnonzero(np.diff(video, prepend=-1))
        return rows, np.append(first, len(rows)), np.asarray(video[first], np.int64)

    @cached_property
    def video_experts(self) -> Bool:
        """`[videos, experts]`, in the order of `video_numbers`: which experts some item of a video has."""
        rows, edges = self.segments
        if not len(rows):
            return np.zeros((0, self.gallery.available.shape[1]), bool)
        return np.asarray(np.logical_or.reduceat(self.gallery.available[rows], edges[:-1], axis=0))

    def coverage(self, experts: Sequence[str], contents: Sequence[str]) -> dict[str, float]:
        """Return the share of these videos that each expert has features of."""
        present = np.array([self.gallery.available[self.rows(content)].any(axis=0) for content in contents])
        return dict(zip(experts, present.mean(axis=0).round(4).tolist(), strict=True))

    @property
    def video_numbers(self) -> Int64:
        """The number of every video that can be found, in the order of `contents`."""
        return self._by_video[2]

    def paths(self) -> dict[str, str]:
        """Return the first path of every video that can be found, by content, in order of path."""
        found = set(self.contents())
        files = first_files(self.store.catalogue, FileConditions())
        return {content: file.path for content, file in files.items() if content in found}


@dataclass(frozen=True, eq=False)
class OpenedIndex:
    """An index over all rows, `clips` of which are live; `built` is the part of it that comes from files."""

    index: Index
    clips: int
    built: BuiltIndex | None = None
    on_gpu: bool = False

    def __str__(self) -> str:
        rows = f"{self.clips:,} clips"
        if self.built is None:
            from wordreel.index.server import ServerIndex

            remote = isinstance(self.index, ServerIndex)
            scan = f"exact scan of {rows}" + (" on the GPU" if self.on_gpu else "")
            return f"{rows} searched by {self.index}" if remote else scan
        quality = "; ".join(f"{kind}: {recall}" for kind, recall in self.built.recall.items()) or "exact"
        late = len(self.index) - self.built.rows
        return f"{self.built.name} over {rows} ({quality})" + (f", {late:,} of them scanned" if late else "")


def index_cache(store: LibraryStore, model: Model, gallery: Gallery) -> IndexCache:
    """Return the index files beside the embeddings."""
    return IndexCache(embedding_cache(store, model).folder / "index", gallery.generation)


def open_index(gallery: Gallery, cache: IndexCache, resident: bool = False) -> OpenedIndex:
    """Return the index for the size of a gallery, if it is built; an exact scan otherwise.

    A `resident` one may take seconds to open, for the sake of many searches: it is on the GPU if it fits.
    """
    if resident:
        from wordreel.index.cuda import gpu_index

        if (on_gpu := gpu_index(cache, gallery.vectors, gallery.available)) is not None:
            return OpenedIndex(on_gpu, len(gallery.live_rows), on_gpu=True)
    builder = builder_for(gallery.vectors)
    index = None if builder is None else cache.open(builder, gallery.vectors, gallery.available)
    if builder is None or index is None:
        scan = ExactIndex(gallery.vectors, gallery.available)
        return OpenedIndex(scan, len(gallery.live_rows))
    return OpenedIndex(index, len(gallery.live_rows), cache.read(builder.name))
