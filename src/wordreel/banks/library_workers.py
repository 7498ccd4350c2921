"""Embed a library's clips and fit its banks on workers.

Workers read the library's files, never its catalogue: SQLite is for processes of one machine. What only the
catalogue knows travels with each call.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial, reduce
from itertools import islice
from pathlib import Path

import numpy as np

from wordreel.banks.fitted_states import fit_queries
from wordreel.banks.query_embeddings import BankEmbeddings
from wordreel.catalogue.store import LibraryStore
from wordreel.catalogue.tracks import is_object_address, open_tracks
from wordreel.embed.embed_library import embed_tracks, embedding_cache
from wordreel.embed.embedding_cache import Gallery, open_gallery, read_manifest
from wordreel.errors import LibraryError, NextStep, WeightsError
from wordreel.hubness import Method, State
from wordreel.models.base import Model
from wordreel.models.model_store import in_use, open_named
from wordreel.runtime.store import WeightStore
from wordreel.types import Bool, Clip, Float32, Int64
from wordreel.workers.executor import Executor

VIDEOS = 16  # embedded by one call
PER_WORKER = 4  # blocks of a bank, so that a slow worker holds up little


@dataclass(frozen=True)
class OpenModel:
    """Opens the model of a library whose folder, like the weights, is at the same path on every node."""

    library: Path
    weights: Path
    key: str  # what the library calls it
    fingerprint: str

    @classmethod
    def of(cls, store: LibraryStore, weights: WeightStore, model: Model) -> OpenModel:
        """Describe the model of a library, for workers to open."""
        return cls(store.path, weights.root, in_use(store), model.fingerprint)

    def __call__(self) -> Model:
        """Open the model, and check that it is the same here."""
        model = open_named(self.library, WeightStore(self.weights), self.key)
        if model is None or model.fingerprint != self.fingerprint:
            raise WeightsError(
                f"{socket.gethostname()} has not the model that this library uses, or has other weights",
                NextStep("use the same version of wordreel and the same weights on every node"),
            )
        return model


@dataclass(frozen=True)
class LibraryWorkers:
    """The workers of an executor, for one library and its model."""

    executor: Executor
    store: LibraryStore
    model: Model
    open_model: Callable[[], Model]  # in a worker

    @classmethod
    def of(
        cls, executor: Executor, store: LibraryStore, weights: WeightStore, model: Model
    ) -> LibraryWorkers:
        """Share the model of a library with workers."""
        return cls(executor, store, model, OpenModel.of(store, weights, model))

    def embed_videos(self, videos: Iterable[tuple[str, Sequence[Clip]]]) -> Iterator[tuple[Float32, Bool]]:
        """Embed videos, as `wordreel.embed.embed_library.EmbedVideos` asks."""
        calls = ((self.open_model, self.store.track_files.address, some) for some in self._batches(videos))
        for made in self.executor.map(_embed, calls):
            yield from made

    def _batches(
        self, videos: Iterable[tuple[str, Sequence[Clip]]]
    ) -> Iterator[list[tuple[dict[str, str], Sequence[Clip]]]]:
        model, left = self.model, iter(videos)
        hashes = partial(
            self.store.track_hashes, experts=model.track_experts, fingerprints=model.track_fingerprints
        )
        while some := list(islice(left, VIDEOS)):
            named = hashes([content for content, _ in some])
            yield [(tracks, clips) for tracks, (_, clips) in zip(named, some, strict=True)]

    def fit(self, queries: Int64, vectors: BankEmbeddings, gallery: Gallery, method: Method) -> State:
        """Fit blocks of the bank's queries and merge their states.

        This is a `wordreel.banks.fitted_states.FitBank`.
        """
        elsewhere = is_object_address(
            self.store.track_files.address
        )  # workers do not see the library's folder
        if elsewhere or not has_mergeable_states(method):
            return fit_queries(queries, vectors, gallery, method)
        files = _GalleryFiles.of(embedding_cache(self.store, self.model).folder, gallery)
        blocks = (queries[start:stop] for start, stop in spans(len(queries), self.executor.count))
        calls = ((files, vectors.of(block), method) for block in blocks)
        return reduce(State.merge, self.executor.map(_fit, calls))


@dataclass(frozen=True, eq=False)
class _GalleryFiles:
    """The embeddings of a library as files, with what the catalogue knows of them."""

    folder: Path
    generation: int
    rows: int
    live: Bool | None

    @classmethod
    def of(cls, folder: Path, gallery: Gallery) -> _GalleryFiles:
        return cls(folder, gallery.generation, len(gallery), gallery.live)

    def open(self) -> Gallery:
        now = read_manifest(self.folder)
        if now is None or now.generation != self.generation or now.rows < self.rows:
            raise LibraryError(
                f"{socket.gethostname()} does not see the embeddings in {self.folder}",
                NextStep("mount the library's folder at the same path on every node"),
            )
        return replace(open_gallery(self.folder, replace(now, rows=self.rows)), live=self.live)


@lru_cache(maxsize=1)  # a worker serves one library at a time, and keeps its networks loaded
def _model(open_model: Callable[[], Model]) -> Model:
    return open_model()


def _embed(
    open_model: Callable[[], Model], tracks: str, videos: Sequence[tuple[dict[str, str], Sequence[Clip]]]
) -> list[tuple[Float32, Bool]]:
    files, model = open_tracks(tracks), _model(open_model)
    return [
        embed_tracks(model, {name: files.load(digest) for name, digest in hashes.items()}, clips)
        for hashes, clips in videos
    ]


def _fit(files: _GalleryFiles, vectors: BankEmbeddings, method: Method) -> State:
    return fit_queries(np.asarray(vectors.ids), vectors, files.open(), method)


def has_mergeable_states(method: Method) -> bool:
    """Return whether a bank can be fitted in blocks of its queries."""
    return method.streaming and len(method.banks) == 1 and not method.transductive


def spans(rows: int, workers: int) -> list[tuple[int, int]]:
    """Cut rows into blocks for so many workers, several for each.

    >>> spans(10, 1)
    [(0, 3), (3, 6), (6, 9), (9, 10)]
    """
    step = max(1, -(-rows // (PER_WORKER * workers)))
    return [(start, min(start + step, rows)) for start in range(0, rows, step)]
