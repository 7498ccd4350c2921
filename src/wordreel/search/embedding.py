"""Bring a library's embeddings up to date: every clip that the model has not embedded yet."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from wordreel.library.embeddings import EmbeddingCache
from wordreel.library.store import LibraryStore
from wordreel.models.base import Model
from wordreel.types import Track

BATCH = 256  # clips between two commits

Progress = Callable[[int, int], None]


def embedding_cache(store: LibraryStore, model: Model) -> EmbeddingCache:
    """Where the embeddings of this model are kept in this library."""
    return EmbeddingCache(store, model.fingerprint, model.experts, model.dim)


def embed_library(store: LibraryStore, model: Model, progress: Progress | None = None) -> int:
    """Embed what is missing, from stored tracks: nothing is decoded. Returns the number of new clips.

    Interrupted, it goes on from the last commit.
    """
    with store.writing():
        cache = embedding_cache(store, model)
        cache.compact()
        missing = set(cache.missing())
        todo: dict[str, list[int]] = {}
        clips = {}
        for clip in store.clips():
            if clip.id in missing:
                todo.setdefault(clip.content, []).append(clip.id)
                clips[clip.id] = clip.clip
        done = 0
        ids: list[int] = []
        vectors, available = [], []
        for content, wanted in todo.items():
            made, there = model.embed(tracks_of(store, model, content), [clips[i] for i in wanted])
            ids += wanted
            vectors.append(made)
            available.append(there)
            done += len(wanted)
            if len(ids) >= BATCH or done == len(missing):
                cache.append(ids, np.concatenate(vectors), np.concatenate(available))
                ids, vectors, available = [], [], []
                if progress:
                    progress(done, len(missing))
        return done


def tracks_of(store: LibraryStore, model: Model, content: str) -> dict[str, Track]:
    """The tracks of one video that the model can use."""
    return store.present_tracks(content, model.track_experts)
