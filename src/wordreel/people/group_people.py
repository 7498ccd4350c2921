"""Group the faces of a library's videos into people, as far as they are not grouped yet."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from wordreel.catalogue.store import LibraryStore
from wordreel.people.face_groups import FaceSpan, candidate_groups, face_spans, group_faces
from wordreel.progress import Progress, ProgressCallback
from wordreel.types import Float32, Float64, Int64, Track

EXPERT = "faces"
AT_ONCE = 1_000  # new faces that are grouped together


def waiting_contents(store: LibraryStore) -> list[tuple[str, str]]:
    """Return contents whose faces are not grouped, or were from another track.

    Each comes with the hash of the track.
    """
    rows = store.catalogue.rows(
        """SELECT t.content, t.hash FROM tracks t LEFT JOIN grouped_contents g ON g.content = t.content
           WHERE t.expert = ? AND t.state = 'present' AND g.hash IS NOT t.hash
             AND EXISTS (SELECT 1 FROM files f WHERE f.content = t.content) ORDER BY t.content""",
        EXPERT,
    )
    return [(str(content), str(digest)) for content, digest in rows]


def update_groups(store: LibraryStore, on_progress: ProgressCallback | None = None) -> int:
    """Group the faces that are not grouped yet; returns how many looks at faces there were.

    Batch by batch, each one transaction: stopped, the next call goes on.
    """
    waiting = waiting_contents(store)
    total = 0
    batch: list[tuple[str, str, list[FaceSpan]]] = []
    for done, (content, digest) in enumerate(waiting, start=1):
        batch.append((content, digest, _spans(store, content)))
        if done == len(waiting) or sum(len(spans) for _, _, spans in batch) >= AT_ONCE:
            total += _group(store, batch)
            batch = []
        if on_progress is not None:
            on_progress(Progress("grouping faces", done, len(waiting)))
    return total


def _spans(store: LibraryStore, content: str) -> list[FaceSpan]:
    """Return the faces of a content, none later than its end."""
    track, info = store.track(content, EXPERT), store.info(content)
    if not isinstance(track, Track) or info is None:
        return []
    if info.kind == "image":
        return face_spans(track, still=True)
    return [replace(span, end=min(span.end, info.duration)) for span in face_spans(track)]


def _group(store: LibraryStore, batch: Sequence[tuple[str, str, list[FaceSpan]]]) -> int:
    """Replace the faces of some contents and group them with all others."""
    catalogue = store.catalogue
    with store.editing():
        here = [(c, d, s) for c, d, s in batch if store.info(c) is not None]  # not removed meanwhile
        for content, digest, _ in here:
            catalogue.run("DELETE FROM person_faces WHERE content = ?", content)
            catalogue.run("INSERT OR REPLACE INTO grouped_contents VALUES (?, ?)", content, digest)
        new = [(content, span) for content, _, spans in here for span in spans]
        if not new:
            _drop_empty(store)
            return 0
        fresh = np.stack([span.vector for _, span in new])
        known, old = _candidates(store, fresh)
        edited = [int(row[0]) for row in catalogue.rows("SELECT id FROM people WHERE edited")]
        vectors = np.concatenate([old, fresh])
        contents = [str(row[1]) for row in known] + [content for content, _ in new]
        times = [(row[3], row[4]) for row in known] + [(span.start, span.end) for _, span in new]
        groups = np.array([int(row[2]) for row in known] + [-1] * len(new), np.int64)
        apart = seen_together(contents, np.array(times, np.float64).reshape(-1, 2))
        found = group_faces(vectors, groups, apart, edited)
        _save(store, known, new, found)
    return len(new)


def _candidates(store: LibraryStore, fresh: Float32) -> tuple[list[tuple[Any, ...]], Float32]:
    """Return the faces of the groups that new ones can change, and their vectors `[faces, dim]`."""
    rows = store.catalogue.rows(
        "SELECT id, content, person, start, end, vector FROM person_faces ORDER BY id"
    )
    dim = fresh.shape[1]
    vectors = np.frombuffer(b"".join(row[5] for row in rows), np.float32).reshape(-1, dim)
    groups = np.array([row[2] for row in rows], np.int64)
    chosen = np.isin(groups, candidate_groups(vectors, groups, fresh))
    return [rows[at] for at in np.flatnonzero(chosen)], vectors[chosen]


def seen_together(contents: Sequence[str], times: Float64) -> Int64:
    """Return `[pairs, 2]`: the faces that are seen in one content at the same time."""
    faces: dict[str, list[int]] = {}
    for face, content in enumerate(contents):
        faces.setdefault(content, []).append(face)
    pairs = [
        (one, two)
        for some in faces.values()
        for one, two in combinations(some, 2)
        if times[one, 0] < times[two, 1] and times[two, 0] < times[one, 1]
    ]
    pairs += [
        (one, two)
        for some in faces.values()
        for one, two in combinations(some, 2)
        if times[one, 0] == times[one, 1] == times[two, 0]
    ]
    return np.array(pairs, np.int64).reshape(-1, 2)


def _save(
    store: LibraryStore,
    known: Sequence[tuple[Any, ...]],
    new: Sequence[tuple[str, FaceSpan]],
    found: Int64,
) -> None:
    catalogue = store.catalogue
    ids: dict[int, int] = {}
    for group in dict.fromkeys(found.tolist()):
        if group >= 0:
            ids[group] = group
        else:
            row = catalogue.one("INSERT INTO people (made_at) VALUES (?) RETURNING id", time.time())
            ids[group] = int(row[0]) if row else 0
    catalogue.run_many(
        "UPDATE person_faces SET person = ? WHERE id = ? AND person != ?",
        [(ids[g], row[0], ids[g]) for row, g in zip(known, found[: len(known)].tolist(), strict=True)],
    )
    catalogue.run_many(
        "INSERT INTO person_faces (content, person, start, end, rows, vector) VALUES (?, ?, ?, ?, ?, ?)",
        [
            (content, ids[group], span.start, span.end, span.rows, _blob(span.vector))
            for (content, span), group in zip(new, found[len(known) :].tolist(), strict=True)
        ],
    )
    _drop_empty(store)


def _blob(vector: Float32) -> bytes:
    return np.ascontiguousarray(vector, np.float32).tobytes()


def _drop_empty(store: LibraryStore) -> None:
    """Delete people of whom no face is left, unless they have a name."""
    store.catalogue.run(
        """DELETE FROM people WHERE key = ''
           AND NOT EXISTS (SELECT 1 FROM person_faces f WHERE f.person = people.id)"""
    )
