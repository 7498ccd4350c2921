"""A library of any number of clips, made from the tracks of a real one without decoding anything.

A video has its whole and nine clips. It has the tracks and the words of a real video, under another name; its
embeddings are those of random real clips with noise, which keeps their clusters, hubs and missing experts.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from wordreel.catalogue.clips import ClipBounds
from wordreel.catalogue.records import FileStamp
from wordreel.catalogue.store import LibraryStore
from wordreel.catalogue.tracks import StagedTrack
from wordreel.embed.embed_library import embed_library, embedding_cache
from wordreel.ingest.extract import ExpertResult
from wordreel.ingest.record_file import record_file
from wordreel.ingest.tasks import AddTask, ProcessedFile
from wordreel.media.types import MediaInfo
from wordreel.models.base import Model
from wordreel.types import Absent, Bool, Float32

CLIPS = 10  # of a video, its whole among them
REAL = 200  # videos that the others are copies of
NOISE = 0.5  # its length, of unit vectors
AT_ONCE = 20_000  # clips between two commits


@dataclass(frozen=True, eq=False)
class Originals:
    """Real videos: what the catalogue says of each, and the embeddings of all their clips."""

    infos: Sequence[MediaInfo]
    results: Sequence[tuple[ExpertResult, ...]]
    vectors: Float32
    available: Bool


def read_originals(source: LibraryStore, target: LibraryStore, model: Model) -> Originals:
    """Real videos and their embeddings, which are computed first if the library has none by this model.

    Copies their tracks into the library that is to be filled.
    """
    embed_library(source, model)
    gallery = embedding_cache(source, model).load()
    videos = source.videos()[:REAL]
    results = [tuple(_copied(source, target, video.content)) for video in videos]
    vectors, available = np.array(gallery.vectors), np.array(gallery.available)
    return Originals([video.info for video in videos], results, vectors, available)


def originals_of(store: LibraryStore, model: Model) -> Originals:
    """The first videos of a synthetic library, to make more like them."""
    videos = store.videos()[:CLIPS]
    results = []
    for video in videos:
        rows = store.tracks(video.content)
        tracks = {row.expert: store.track_files.load(row.hash) for row in rows if row.hash is not None}
        results.append(
            tuple(
                ExpertResult.of(
                    row.expert,
                    row.fingerprint,
                    tracks.get(row.expert, Absent(row.reason)),
                    None if row.hash is None else StagedTrack(row.hash, Path()),
                )
                for row in rows
            )
        )
    stored = embedding_cache(store, model).raw()
    vectors, available = np.array(stored.vectors[:1_000]), stored.available[:1_000]
    return Originals([video.info for video in videos], results, vectors, available)


def _copied(source: LibraryStore, target: LibraryStore, content: str) -> list[ExpertResult]:
    rows = source.tracks(content)
    tracks = {row.expert: source.track_files.load(row.hash) for row in rows if row.hash is not None}
    staged = dict(zip(tracks, target.track_files.stage_all(list(tracks.values())), strict=True))
    target.track_files.commit_all(list(staged.values()))
    return [
        ExpertResult.of(row.expert, row.fingerprint, tracks[row.expert], staged[row.expert])
        if row.expert in tracks
        else ExpertResult(row.expert, row.fingerprint, None, row.reason)
        for row in rows
    ]


def add_videos(store: LibraryStore, model: Model, originals: Originals, first: int, count: int) -> list[str]:
    """Add the videos `first` … `first + count` and their embeddings; returns their paths."""
    rng = np.random.default_rng(first)
    cache, paths = embedding_cache(store, model), []
    with store.writing():
        for start in range(first, first + count, AT_ONCE // CLIPS):
            numbers = range(start, min(start + AT_ONCE // CLIPS, first + count))
            with store.catalogue.transaction():
                paths += [_record(store, originals, number) for number in numbers]
            wanted = cache.missing()
            vectors, available = perturbed(originals, rng, len(wanted))
            cache.append(wanted, vectors, available)
            cache.open()  # the columns grow with the embeddings
    return paths


def perturbed(originals: Originals, rng: np.random.Generator, count: int) -> tuple[Float32, Bool]:
    """Embeddings of random real clips, each moved a little and of unit length again."""
    chosen = rng.integers(len(originals.vectors), size=count)
    vectors = originals.vectors[chosen]
    vectors = vectors + rng.standard_normal(vectors.shape, np.float32) * (NOISE / vectors.shape[2] ** 0.5)
    vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
    return vectors, originals.available[chosen]


def _record(store: LibraryStore, originals: Originals, number: int) -> str:
    which = number % len(originals.infos)
    info = originals.infos[which]
    content = hashlib.sha256(f"synthetic {number}".encode()).hexdigest()
    edges = np.linspace(0, max(info.duration, 1.0), CLIPS)
    pieces = [ClipBounds(float(a), float(b), shot=0) for a, b in itertools.pairwise(edges)]
    clips = (ClipBounds(0.0, float(edges[-1]), whole=True), *pieces)
    path = f"/synthetic/{number // 1000:04}/{number}.mp4"
    task = AddTask(path, FileStamp(1000 + number, number, number, number), False, 0)
    record_file(store, ProcessedFile(task, content, info, originals.results[which], clips, 0.0))
    return path
