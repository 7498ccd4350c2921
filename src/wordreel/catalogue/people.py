"""The tables of people: what the owner sees of groups of faces, names, merges, splits and forgets.

`group_people.py` makes the groups, once the owner turns that on. Tables are written outside the writer's
lock, as those of tags are.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from wordreel.catalogue.annotations import compared, refuse_read_only
from wordreel.catalogue.store import LibraryStore
from wordreel.errors import LibraryError, NextStep, QueryError
from wordreel.types import Float32

ON_SETTING = "people"
EXPERT = "faces"
LONGEST_NAME = 100
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
