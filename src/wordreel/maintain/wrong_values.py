"""Values that are wrong although their bytes are those that were written, which is all that checksums show.

Degenerate embeddings show without computing any again; others where a sample of embeddings and tracks is
computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np

from wordreel.catalogue.records import Video
from wordreel.catalogue.store import LibraryStore
from wordreel.embed.embed_library import embed_clips, embedding_cache, tracks_of
from wordreel.errors import MediaError, WordreelError
from wordreel.experts.base import Expert
from wordreel.ingest.extract import MediaDecoder, content_hash, extract_file
from wordreel.maintain.repair import LibraryProblem
from wordreel.models.base import Model
from wordreel.progress import Progress, ProgressCallback
from wordreel.types import Track
from wordreel.util.degenerate import embeddings_fault
from wordreel.util.even_sample import even_sample

MOST_CHECKED = 20_000  # embeddings, evenly spread over the library
MOST_NAMED = 20  # videos
EMBEDDING_TOLERANCE = 1e-3  # largest difference between two numbers of unit vectors

T = TypeVar("T")
LoadExpert = Callable[[str], Expert]


def degenerate_embeddings(
    store: LibraryStore, model: Model, most: int = MOST_CHECKED
) -> list[tuple[str, LibraryProblem]]:
    """Yield what is wrong with the embeddings of a library: (expert, problem).

    With the file, where it is one's.

    A video of which nothing is embedded although the model could read its tracks is a problem too: what the
    model returned was not finite.
    """
    gallery, columns = embedding_cache(store, model).open()
    live = gallery.live_rows
    rows = live[even_sample(len(live), most)]
    vectors, available = np.asarray(gallery.vectors[rows]), gallery.available[rows]

    def path(row: int) -> str:
        video = store.video(columns[int(row)].content)
        return video.paths[0] if video and video.paths else ""

    found: list[tuple[str, LibraryProblem]] = []
    for number, expert in enumerate(model.experts):
        there = rows[available[:, number]]
        fault, at = embeddings_fault(vectors[available[:, number], number])
        if fault:
            first = f", of {path(int(there[at]))} for one" if at >= 0 else ""
            found.append((expert, _problem(f"of the embeddings of {expert}, {fault}{first}")))
    named = set(model.experts) & set(model.track_experts)
    empty = rows[~available.any(axis=1) & (columns.clips["whole"][rows] != 0)]
    for row in empty[:MOST_NAMED].tolist():
        readable = sorted(named & set(tracks_of(store, model, columns[row].content)))
        if readable:
            what = f"the model {model.name!r} has no usable embedding of {path(row)}"
            found.append((", ".join(readable), _problem(what)))
    return found


def _problem(what: str) -> LibraryProblem:
    return LibraryProblem("embeddings", what, repairable=False)


def recompute_embeddings(
    store: LibraryStore, model: Model, sample: int = 64, seed: int = 0
) -> list[LibraryProblem]:
    """Embed `sample` random videos again from their tracks; a problem if any stored embedding differs."""
    cache = embedding_cache(store, model)
    gallery = cache.load()
    stored = {int(clip): row for row, clip in enumerate(gallery.ids)}
    different = checked = 0
    for content in _drawn([video.content for video in store.videos()], sample, seed):
        clips = [clip for clip in store.clips(content) if clip.id in stored]
        if not clips:
            continue
        vectors, available = embed_clips(store, model, content, [clip.clip for clip in clips])
        rows = [stored[clip.id] for clip in clips]
        same = np.array_equal(gallery.available[rows], available) and np.allclose(
            gallery.vectors[rows], vectors, atol=EMBEDDING_TOLERANCE, rtol=0
        )
        checked += 1
        different += not same
    if not different:
        return []
    text = f"stored embeddings of {different} of {checked} videos differ from those of their tracks"
    return [LibraryProblem("cache", text, key=(str(cache.folder),))]


def recompute_tracks(
    store: LibraryStore,
    load: LoadExpert,
    decoder: MediaDecoder,
    sample: int = 3,
    seed: int = 0,
    on_progress: ProgressCallback | None = None,
) -> list[LibraryProblem]:
    """Run the experts again on `sample` random files that are still there; a problem for each other track.

    Tracks of experts in another version than today's are left out: they are out of date, not wrong.
    """
    problems: list[LibraryProblem] = []
    experts: dict[str, Expert] = {}
    drawn = list(_unchanged(store, store.videos(), sample, seed))
    for number, (video, path) in enumerate(drawn):
        if on_progress is not None:
            on_progress(Progress("files checked", number, len(drawn)))
        rows = {row.expert: row for row in store.tracks(video.content) if row.hash is not None}
        for name in rows.keys() - experts.keys():
            try:
                experts[name] = load(name)
            except WordreelError:  # imported, or weights that are no longer here
                continue
        known = [experts[name] for name in rows if name in experts]
        today = [expert for expert in known if expert.fingerprint == rows[expert.card.name].fingerprint]
        problems += _compare(store, video, path, today, decoder)
    if on_progress is not None:
        on_progress(Progress("files checked", len(drawn), len(drawn)))
    return problems


def _compare(
    store: LibraryStore,
    video: Video,
    path: Path,
    experts: Sequence[Expert],
    decoder: MediaDecoder,
) -> Iterator[LibraryProblem]:
    try:
        again = extract_file(path, experts, decoder).tracks
    except MediaError as error:
        yield LibraryProblem("track", f"{path} can no longer be decoded ({error.message})", repairable=False)
        return
    for expert in experts:
        name = expert.card.name
        stored = store.track(video.content, name)
        fresh = again.get(name)
        if (
            not isinstance(stored, Track)
            or fresh is None
            or not _alike(stored, fresh, expert.card.same_cosine)
        ):
            text = f"the {name} track of {path} is not what its expert gives today"
            yield LibraryProblem("track", text, key=(video.content, name))


def _alike(one: Track, other: Track, same_cosine: float) -> bool:
    if one.values.shape != other.values.shape or not np.allclose(one.times, other.times, atol=1e-3):
        return False
    products = np.einsum("nd,nd->n", one.values, other.values, dtype=np.float64)
    lengths = np.linalg.norm(one.values, axis=1) * np.linalg.norm(other.values, axis=1)
    scale = np.allclose(np.linalg.norm(one.values), np.linalg.norm(other.values), rtol=0.01)
    return bool(scale and (products >= same_cosine * lengths).all())


def _unchanged(
    store: LibraryStore, videos: Sequence[Video], sample: int, seed: int
) -> Iterator[tuple[Video, Path]]:
    """Random videos with a file of theirs that still has the bytes that were added."""
    count = 0
    for video in _drawn(list(videos), len(videos), seed):
        for text in video.paths:
            path = Path(text)
            if path.is_file() and content_hash(path) == video.content:
                yield video, path
                count += 1
                break
        if count == sample:
            return


def _drawn(items: Sequence[T], most: int, seed: int) -> list[T]:
    order = np.random.default_rng(seed).permutation(len(items))[:most]
    return [items[number] for number in order]
