"""Embed a library with a model: every clip that is not embedded yet, from stored tracks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from wordreel.catalogue.store import LibraryStore
from wordreel.embed.embedding_cache import EmbeddingCache
from wordreel.errors import NextStep, QueryError, WeightsError
from wordreel.models.base import Model
from wordreel.progress import Progress, ProgressCallback
from wordreel.types import Bool, Clip, Float32, Track
from wordreel.util.degenerate import unusable

BATCH = 256  # clips between two commits
TRIED = 32  # videos, to tell a broken model from one that has nothing to read
WASTE = 0.1  # share of rows of removed clips at which the files are rewritten without them

EmbedVideos = Callable[[Iterable[tuple[str, Sequence[Clip]]]], Iterable[tuple[Float32, Bool]]]
"""Embeds clips of videos, which are named by their content, in order: as `embed_clips` does."""


def embedding_cache(store: LibraryStore, model: Model) -> EmbeddingCache:
    """Return the embeddings of this model in this library."""
    return EmbeddingCache(store, model.fingerprint, model.experts, model.dim)


def embed_library(
    store: LibraryStore,
    model: Model,
    on_progress: ProgressCallback | None = None,
    embed_videos: EmbedVideos | None = None,
) -> int:
    """Embed the missing clips from stored tracks; nothing is decoded. Returns the number of new clips.

    Interrupted, the same call resumes after the last commit. `embed_videos` embeds them somewhere else.
    """
    with store.writing():
        cache = embedding_cache(store, model)
        cache.compact(WASTE)
        missing = cache.missing()
        todo: dict[str, list[int]] = {}
        clips = {}
        for clip in sorted(store.clips_by_id(missing), key=lambda clip: clip.id):
            todo.setdefault(clip.content, []).append(clip.id)
            clips[clip.id] = clip.clip
        done, committed = 0, len(cache.raw())
        ids: list[int] = []
        vectors, available = [], []
        videos = ((content, [clips[i] for i in wanted]) for content, wanted in todo.items())
        if embed_videos is None:
            made: Iterable[tuple[Float32, Bool]] = (embed_clips(store, model, *video) for video in videos)
        else:
            made = embed_videos(videos)
        for wanted, (embedded, present) in zip(todo.values(), made, strict=True):
            ids += wanted
            vectors.append(embedded)
            available.append(present)
            done += len(wanted)
            if len(ids) >= BATCH or done == len(missing):
                if not committed and not any(rows.any() for rows in available):
                    _refuse_broken(store, model, list(todo)[:TRIED])
                cache.append(ids, np.concatenate(vectors), np.concatenate(available))
                committed += len(ids)
                ids, vectors, available = [], [], []
                if on_progress:
                    on_progress(Progress("embedding clips", done, len(missing)))
        if done:
            cache.open()  # writes the columns now, so that no search waits for them
        return done


def embed_content(store: LibraryStore, model: Model, content: str) -> None:
    """Embed the clips of one video, none of which is embedded yet."""
    clips = store.clips(content)
    vectors, available = embed_clips(store, model, content, [clip.clip for clip in clips])
    embedding_cache(store, model).append([clip.id for clip in clips], vectors, available)


def embed_clips(
    store: LibraryStore, model: Model, content: str, clips: Sequence[Clip]
) -> tuple[Float32, Bool]:
    """Call `embed_tracks` for clips of one video of the library."""
    return embed_tracks(model, tracks_of(store, model, content), clips)


def embed_tracks(model: Model, tracks: Mapping[str, Track], clips: Sequence[Clip]) -> tuple[Float32, Bool]:
    """Embed clips of one video by `model.embed`; what is not finite counts as absent."""
    vectors, available = model.embed(tracks, clips)
    bad = unusable(vectors)
    if not bad.any():
        return vectors, available
    return np.where(bad[..., None], np.float32(0), vectors), available & ~bad


def _refuse_broken(store: LibraryStore, model: Model, contents: Iterable[str]) -> None:
    """Raise a `WeightsError` if the model returns values for a video, and none of them is finite."""
    for content in contents:
        clips = [clip.clip for clip in store.clips(content)]
        vectors, available = model.embed(tracks_of(store, model, content), clips)
        if available.any() and unusable(vectors)[available].all():
            video = store.video(content)
            raise WeightsError(
                f"the model {model.name!r} returned values that are not finite for "
                f"{video.paths[0] if video and video.paths else content}",
                NextStep("check its weights", "doctor"),
            )


def tracks_of(store: LibraryStore, model: Model, content: str) -> dict[str, Track]:
    """Return the tracks of one video that the model reads."""
    return tracks_of_all(store, model, [content])[0]


def tracks_of_all(store: LibraryStore, model: Model, contents: Sequence[str]) -> list[dict[str, Track]]:
    """Return the tracks of each video that the model reads."""
    return store.present_tracks(contents, model.track_experts, model.track_fingerprints)


def check_model_fits(store: LibraryStore, model: Model) -> None:
    """Raise a `QueryError` where the model reads nothing that the library has.

    That is: all items were imported with features of other models, no item was seen by the version of an
    expert that the model reads, or there is nothing else that it reads.

    Every item would score the same; a ranking of that would look like an answer.
    """
    imported = store.only_imported()
    wanted = model.track_experts
    if imported and not store.has_tracks(wanted):
        have = ", ".join(sorted(store.stats().experts)) or "no experts"
        raise QueryError(
            f"the model {model.name!r} reads {', '.join(wanted)}; the {imported} items of this library were "
            f"imported with {have}",
            NextStep(
                "use a model trained on those features, or add the videos themselves",
                command="add FOLDER",
                page="Library",
            ),
        )
    for expert, fingerprint in model.track_fingerprints.items():
        if store.has_clips() and not store.has_track_by(expert, fingerprint):
            raise QueryError(
                f"no frame of this library was embedded by {expert} as it is installed now",
                NextStep("embed the frames", command=f"use {model.name}", page="Settings"),
            )
    if (error := outdated_error(store, model)) and not store.has_tracks(wanted):
        raise error


def outdated_error(store: LibraryStore, model: Model) -> QueryError | None:
    """Return what to say of a library that was added before wordreel had the eyes of its model.

    Its pictures are found by other rows alone until the files are added again.
    """
    names = store.expert_names() if model.eyes else set()
    if model.eyes in names or model.former_eyes not in names:
        return None
    return QueryError(
        f"this library was added without the expert {model.eyes}, with which the model {model.name!r} sees; "
        "searches find what is said and written alone",
        NextStep(
            "add the same folders again (what was heard and read is kept)",
            command="add FOLDER",
            page="Library",
        ),
    )
