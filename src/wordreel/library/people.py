"""The tables of people: groups of faces over the library, and the names that the owner gives them.

Nothing is grouped unless the owner turns it on. Written outside the writer's lock, as tags are.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from wordreel.errors import LibraryError, NextStep, QueryError
from wordreel.library.annotations import compared, refuse_read_only
from wordreel.library.face_groups import candidate_groups, group_faces
from wordreel.library.face_spans import FaceSpan, face_spans
from wordreel.library.store import LibraryStore
from wordreel.progress import Progress, ProgressCallback
from wordreel.types import Float32, Float64, Int64, Track

ON_SETTING = "people"
EXPERT = "faces"
LONGEST_NAME = 100
AT_ONCE = 1_000  # new faces that are grouped together
TURN_ON = NextStep("turn it on", "people on", "Settings → People")


@dataclass(frozen=True)
class Person:
    """A group of faces that look alike: how many moments of how many videos, and the best look at it."""

    id: int
    name: str  # "" until the owner gives one
    faces: int
    videos: int
    seconds: float
    face: int  # the number of the longest look, 0 if there is none


@dataclass(frozen=True)
class PersonFace:
    """One look at a person: some seconds of a content."""

    id: int
    person: int
    content: str
    start: float
    end: float
    rows: int


def is_on(store: LibraryStore) -> bool:
    return store.setting(ON_SETTING) == "on"


def turn_on(store: LibraryStore) -> None:
    """Let faces be grouped from now on."""
    refuse_read_only(store)
    store.catalogue.run("INSERT OR REPLACE INTO settings VALUES (?, 'on')", ON_SETTING)


def turn_off(store: LibraryStore) -> None:
    """Group no more faces. What is grouped stays until it is forgotten, and is not searched."""
    refuse_read_only(store)
    store.catalogue.run("DELETE FROM settings WHERE name = ?", ON_SETTING)


def check_on(store: LibraryStore) -> None:
    if not is_on(store):
        raise LibraryError("people are not grouped in this library", TURN_ON)


def known_names(store: LibraryStore) -> list[str]:
    """The names of all people that have one; none while people are turned off."""
    if not is_on(store):
        return []
    rows = store.catalogue.rows("SELECT name FROM people WHERE key != '' ORDER BY key")
    return [str(name) for (name,) in rows]


# Grouping


def waiting_contents(store: LibraryStore) -> list[tuple[str, str]]:
    """Contents whose faces are not grouped, or were from another track, with the hash of the track."""
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
    check_on(store)
    refuse_read_only(store)
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
    track, info = store.track(content, EXPERT), store.info(content)
    if not isinstance(track, Track):
        return []
    return face_spans(track, still=info is not None and info.kind == "image")


def _group(store: LibraryStore, batch: Sequence[tuple[str, str, list[FaceSpan]]]) -> int:
    """Replace the faces of some contents and group them with all others."""
    catalogue = store.catalogue
    with catalogue.transaction():
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
    """The faces of the groups that new ones can change, and their vectors `[faces, dim]`."""
    rows = store.catalogue.rows(
        "SELECT id, content, person, start, end, vector FROM person_faces ORDER BY id"
    )
    dim = fresh.shape[1]
    vectors = np.frombuffer(b"".join(row[5] for row in rows), np.float32).reshape(-1, dim)
    groups = np.array([row[2] for row in rows], np.int64)
    chosen = np.isin(groups, candidate_groups(vectors, groups, fresh))
    return [rows[at] for at in np.flatnonzero(chosen)], vectors[chosen]


def seen_together(contents: Sequence[str], times: Float64) -> Int64:
    """`[pairs, 2]`: the faces that are seen in one content at the same time."""
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


# What the owner sees and does


def list_people(store: LibraryStore, least: int = 1) -> list[Person]:
    """Everybody seen in at least so many moments, and everybody with a name; the most seen first."""
    rows = store.catalogue.rows(
        """SELECT p.id, p.name, count(f.id), count(DISTINCT f.content), coalesce(sum(f.end - f.start), 0)
           FROM people p LEFT JOIN person_faces f ON f.person = p.id
             AND EXISTS (SELECT 1 FROM files x WHERE x.content = f.content)
           GROUP BY p.id HAVING count(f.id) >= ? OR p.key != ''
           ORDER BY p.key = '', count(f.id) DESC, p.id""",
        least,
    )
    people = []
    for number, name, faces, videos, seconds in rows:
        best = store.catalogue.one(
            "SELECT id FROM person_faces WHERE person = ? ORDER BY rows DESC, id LIMIT 1", number
        )
        people.append(Person(number, name, faces, videos, float(seconds), best[0] if best else 0))
    return people


def find_person(store: LibraryStore, who: str) -> int:
    """The id of a person by name or by number.

    Raises:
        LibraryError: There is nobody of that name or number.
    """
    row = store.catalogue.one("SELECT id FROM people WHERE key = ? AND key != ''", compared(who))
    if row is None and who.strip().lstrip("#").isdecimal():
        row = store.catalogue.one("SELECT id FROM people WHERE id = ?", int(who.strip().lstrip("#")[:18]))
    if row is None:
        raise LibraryError(f"there is nobody called {who!r:.120}")
    return int(row[0])


def faces_of(store: LibraryStore, person: int) -> list[PersonFace]:
    """Every look at a person, the longest first."""
    _check_person(store, person)
    rows = store.catalogue.rows(
        """SELECT id, person, content, start, end, rows FROM person_faces f WHERE person = ?
           AND EXISTS (SELECT 1 FROM files x WHERE x.content = f.content) ORDER BY rows DESC, id""",
        person,
    )
    return [PersonFace(*row) for row in rows]


def read_face(store: LibraryStore, number: int) -> tuple[PersonFace, Float32]:
    """One look and its vector.

    Raises:
        LibraryError: There is none of that number.
    """
    row = store.catalogue.one(
        "SELECT id, person, content, start, end, rows, vector FROM person_faces WHERE id = ?", number
    )
    if row is None:
        raise LibraryError(f"there is no face with the number {number}")
    return PersonFace(*row[:6]), np.frombuffer(row[6], np.float32)


def name_person(store: LibraryStore, person: int, name: str) -> None:
    """Give a person a name, or with an empty one take it away.

    Raises:
        QueryError: The name cannot be used.
        LibraryError: Somebody else has it.
    """
    refuse_read_only(store)
    clean = " ".join(name.split())
    if len(clean) > LONGEST_NAME or not clean.isprintable() or '"' in clean or clean.isdecimal():
        raise QueryError(
            f"a name has at most {LONGEST_NAME} characters, not only digits, no quotes, nothing invisible",
            field="name",
        )
    with store.catalogue.transaction():
        _check_person(store, person)
        taken = store.catalogue.one(
            "SELECT id FROM people WHERE key = ? AND key != '' AND id != ?", compared(clean), person
        )
        if taken is not None:
            step = NextStep("merge the two", f"people merge {clean!r} {person}", "People")
            raise LibraryError(f"{clean!r} is the name of somebody else", step)
        store.catalogue.run(
            "UPDATE people SET name = ?, key = ?, edited = 1 WHERE id = ?", clean, compared(clean), person
        )


def merge_people(store: LibraryStore, person: int, others: Iterable[int]) -> None:
    """Say that others are the same person, who keeps the name, or gets the first that one of them has."""
    refuse_read_only(store)
    with store.catalogue.transaction():
        _check_person(store, person)
        for other in dict.fromkeys(others):
            if other == person:
                continue
            _check_person(store, other)
            row = store.catalogue.one("SELECT name, key FROM people WHERE id = ?", other)
            store.catalogue.run("UPDATE person_faces SET person = ? WHERE person = ?", person, other)
            store.catalogue.run("DELETE FROM people WHERE id = ?", other)
            if row and row[1]:
                store.catalogue.run(
                    "UPDATE people SET name = ?, key = ? WHERE id = ? AND key = ''", *row, person
                )
        store.catalogue.run("UPDATE people SET edited = 1 WHERE id = ?", person)


def split_person(store: LibraryStore, person: int, faces: Iterable[int]) -> int:
    """Say that some of a person's faces are somebody else; returns the new person's id.

    Raises:
        LibraryError: A face is not this person's, or none would be left.
    """
    refuse_read_only(store)
    chosen = set(faces)
    with store.catalogue.transaction():
        _check_person(store, person)
        own = {row[0] for row in store.catalogue.rows("SELECT id FROM person_faces WHERE person = ?", person)}
        if not chosen or not chosen <= own:
            raise LibraryError("choose faces of this person to split off")
        if chosen == own:
            raise LibraryError("that would leave nobody; name the person instead")
        row = store.catalogue.one(
            "INSERT INTO people (edited, made_at) VALUES (1, ?) RETURNING id", time.time()
        )
        new = int(row[0]) if row else 0
        store.catalogue.run_many(
            "UPDATE person_faces SET person = ? WHERE id = ?", [(new, face) for face in sorted(chosen)]
        )
        store.catalogue.run("UPDATE people SET edited = 1 WHERE id = ?", person)
    return new


def forget_person(store: LibraryStore, person: int) -> None:
    """Delete a person with name, faces and vectors. The same faces are not grouped again."""
    refuse_read_only(store)
    with store.catalogue.transaction():
        _check_person(store, person)
        store.catalogue.run("DELETE FROM people WHERE id = ?", person)


def forget_everybody(store: LibraryStore) -> int:
    """Turn people off and delete all groups, names and vectors; returns how many people there were."""
    refuse_read_only(store)
    with store.catalogue.transaction():
        count = store.catalogue.run("DELETE FROM people")
        store.catalogue.run("DELETE FROM person_faces")
        store.catalogue.run("DELETE FROM grouped_contents")
        turn_off(store)
    return count


def _check_person(store: LibraryStore, person: int) -> None:
    if store.catalogue.one("SELECT 1 FROM people WHERE id = ?", person) is None:
        raise LibraryError(f"there is nobody with the number {person}")
