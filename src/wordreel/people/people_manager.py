"""`Library.people`: the groups of faces that the owner sees, names, merges, splits and forgets.

`group_people.py` makes the groups once the owner turns that on. Like tags, people are written without the
writer's lock.
"""

from __future__ import annotations

import builtins
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from wordreel.catalogue.annotations import compared
from wordreel.catalogue.store import LibraryStore
from wordreel.errors import LibraryError, NextStep, QueryError
from wordreel.people.group_people import update_groups
from wordreel.progress import ProgressCallback
from wordreel.types import Float32

ON_SETTING = "people"
LONGEST_NAME = 100
TURN_ON = NextStep("turn it on", "people on", "Settings → People")
FACE_COLUMNS = "id, person, content, start, end, rows"

Who = int | str


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


class PeopleManager:
    """The same person over the library: groups of faces, which the owner names. Off unless turned on.

    People are given by number or by name.
    """

    def __init__(self, store: LibraryStore) -> None:
        self._store, self._catalogue = store, store.catalogue

    @property
    def on(self) -> bool:
        """Whether faces are grouped."""
        return self._store.setting(ON_SETTING) == "on"

    def turn_on(self, on_progress: ProgressCallback | None = None) -> int:
        """Group the faces of the library, now and after each add; return how many looks at faces there are.

        Raises:
            LibraryReadOnly: The library cannot be changed.
        """
        with self._store.editing():
            self._catalogue.run("INSERT OR REPLACE INTO settings VALUES (?, 'on')", ON_SETTING)
        return self.update(on_progress)

    def turn_off(self) -> None:
        """Group no more faces. Groups and names stay, unused, until `forget`."""
        with self._store.editing():
            self._catalogue.run("DELETE FROM settings WHERE name = ?", ON_SETTING)

    def check_on(self) -> None:
        """Raise a `LibraryError` if people are turned off."""
        if not self.on:
            raise LibraryError("people are not grouped in this library", TURN_ON)

    def update(self, on_progress: ProgressCallback | None = None) -> int:
        """Group the faces that are not grouped yet; return how many.

        Raises:
            LibraryError: People are turned off.
        """
        self.check_on()
        return update_groups(self._store, on_progress)

    def names(self) -> Sequence[str]:
        """Return the names of all people that have one; none while people are turned off."""
        if not self.on:
            return []
        rows = self._catalogue.rows("SELECT name FROM people WHERE key != '' ORDER BY key")
        return [str(name) for (name,) in rows]

    def list(self, least: int = 1) -> builtins.list[Person]:
        """Return everybody with a name or seen in at least so many moments; the most seen first."""
        rows = self._catalogue.rows(
            """SELECT p.id, p.name, count(f.id), count(DISTINCT f.content),
                      coalesce(sum(f.end - f.start), 0.0),
                      coalesce((SELECT b.id FROM person_faces b WHERE b.person = p.id
                                ORDER BY b.rows DESC, b.id LIMIT 1), 0)
               FROM people p LEFT JOIN person_faces f ON f.person = p.id
                 AND EXISTS (SELECT 1 FROM files x WHERE x.content = f.content)
               GROUP BY p.id HAVING count(f.id) >= ? OR p.key != ''
               ORDER BY p.key = '', count(f.id) DESC, p.id""",
            least,
        )
        return [Person(*row) for row in rows]

    def faces(self, who: Who) -> Sequence[PersonFace]:
        """Return every look at a person, the longest first."""
        rows = self._catalogue.rows(
            f"""SELECT {FACE_COLUMNS} FROM person_faces f WHERE person = ?
                AND EXISTS (SELECT 1 FROM files x WHERE x.content = f.content)
                ORDER BY rows DESC, id""",  # noqa: S608
            self.find(who),
        )
        return [PersonFace(*row) for row in rows]

    def face(self, number: int) -> tuple[PersonFace, Float32]:
        """Return one look and its vector.

        Raises:
            LibraryError: There is none of that number.
        """
        row = self._catalogue.one(
            f"SELECT {FACE_COLUMNS}, vector FROM person_faces WHERE id = ?",  # noqa: S608
            number,
        )
        if row is None:
            raise LibraryError(f"there is no face with the number {number}")
        return PersonFace(*row[:6]), np.frombuffer(row[6], np.float32)

    def name(self, who: Who, name: str) -> None:
        """Give a person a name, or with an empty one take it away.

        Raises:
            QueryError: The name cannot be used.
            LibraryError: Somebody else has the name.
        """
        clean = " ".join(name.split())
        if len(clean) > LONGEST_NAME or not clean.isprintable() or '"' in clean or clean.isdecimal():
            raise QueryError(
                f"a name has at most {LONGEST_NAME} characters, "
                "not only digits, no quotes, nothing invisible",
                field="name",
            )
        with self._store.editing():
            person = self.find(who)
            taken = self._catalogue.one(
                "SELECT id FROM people WHERE key = ? AND key != '' AND id != ?", compared(clean), person
            )
            if taken is not None:
                step = NextStep("merge the two", f"people merge {clean!r} {person}", "People")
                raise LibraryError(f"{clean!r} is the name of somebody else", step)
            self._catalogue.run(
                "UPDATE people SET name = ?, key = ?, edited = 1 WHERE id = ?", clean, compared(clean), person
            )

    def merge(self, who: Who, *others: Who) -> None:
        """Say that others are the same person, who keeps the name, or gets the first that one of them has."""
        with self._store.editing():
            person = self.find(who)
            for other in dict.fromkeys(map(self.find, others)):
                if other == person:
                    continue
                row = self._catalogue.one("SELECT name, key FROM people WHERE id = ?", other)
                self._catalogue.run("UPDATE person_faces SET person = ? WHERE person = ?", person, other)
                self._catalogue.run("DELETE FROM people WHERE id = ?", other)
                if row and row[1]:
                    self._catalogue.run(
                        "UPDATE people SET name = ?, key = ? WHERE id = ? AND key = ''", *row, person
                    )
            self._catalogue.run("UPDATE people SET edited = 1 WHERE id = ?", person)

    def split(self, who: Who, faces: Iterable[int]) -> int:
        """Say that some of a person's faces, by number, are somebody else; return who is new.

        Raises:
            LibraryError: A face is not this person's, or none would be left.
        """
        chosen = set(faces)
        with self._store.editing():
            person = self.find(who)
            rows = self._catalogue.rows("SELECT id FROM person_faces WHERE person = ?", person)
            own = {number for (number,) in rows}
            if not chosen or not chosen <= own:
                raise LibraryError("choose faces of this person to split off")
            if chosen == own:
                raise LibraryError("that would leave nobody; name the person instead")
            row = self._catalogue.one(
                "INSERT INTO people (edited, made_at) VALUES (1, ?) RETURNING id", time.time()
            )
            new = int(row[0]) if row else 0
            self._catalogue.run_many(
                "UPDATE person_faces SET person = ? WHERE id = ?", [(new, face) for face in sorted(chosen)]
            )
            self._catalogue.run("UPDATE people SET edited = 1 WHERE id = ?", person)
        return new

    def forget(self, who: Who | None = None) -> int:
        """Delete a person with name, faces and vectors, or everybody, which also turns people off.

        The rows of the faces expert stay in the library's tracks, but are not grouped again. Returns how many
        people were deleted.
        """
        with self._store.editing():
            if who is not None:
                return self._catalogue.run("DELETE FROM people WHERE id = ?", self.find(who))
            count = self._catalogue.run("DELETE FROM people")
            self._catalogue.run("DELETE FROM person_faces")
            self._catalogue.run("DELETE FROM grouped_contents")
            self.turn_off()
        return count

    def find(self, who: Who) -> int:
        """Return the number of a person.

        Raises:
            LibraryError: There is nobody of that name or number.
        """
        if isinstance(who, int):
            if self._catalogue.one("SELECT 1 FROM people WHERE id = ?", who) is None:
                raise LibraryError(f"there is nobody with the number {who}")
            return who
        row = self._catalogue.one("SELECT id FROM people WHERE key = ? AND key != ''", compared(who))
        if row is None and who.strip().lstrip("#").isdecimal():
            row = self._catalogue.one("SELECT id FROM people WHERE id = ?", int(who.strip().lstrip("#")[:18]))
        if row is None:
            raise LibraryError(f"there is nobody called {who!r:.120}")
        return int(row[0])
