"""The people of a library, as Python sees them: `Library.people`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from wordreel.catalogue.people import (
    Person,
    PersonFace,
    faces_of,
    find_person,
    forget_everybody,
    forget_person,
    is_on,
    list_people,
    merge_people,
    name_person,
    split_person,
    turn_off,
    turn_on,
)
from wordreel.catalogue.store import LibraryStore
from wordreel.people.group_people import update_groups
from wordreel.progress import ProgressCallback

Who = int | str


class PeopleManager:
    """The same person over the library: groups of faces, which the owner names. Off unless turned on.

    People are told by number or by name.
    """

    def __init__(self, store: LibraryStore) -> None:
        self._store = store

    @property
    def on(self) -> bool:
        """Whether faces are grouped."""
        return is_on(self._store)

    def turn_on(self, on_progress: ProgressCallback | None = None) -> int:
        """Group the faces of the library, now and after each add; returns how many looks at faces there are.

        Raises:
            LibraryReadOnly: The library cannot be changed.
        """
        turn_on(self._store)
        return self.update(on_progress)

    def turn_off(self) -> None:
        """Group no more faces. Groups and names stay, unused, until `forget`."""
        turn_off(self._store)

    def update(self, on_progress: ProgressCallback | None = None) -> int:
        """Group the faces that are not grouped yet; returns how many.

        Raises:
            LibraryError: People are turned off.
        """
        return update_groups(self._store, on_progress)

    def list(self, least: int = 1) -> list[Person]:
        """Everybody seen in at least so many moments, and everybody with a name; the most seen first."""
        return list_people(self._store, least)

    def faces(self, who: Who) -> Sequence[PersonFace]:
        """Every look at a person, the longest first."""
        return faces_of(self._store, self._id(who))

    def name(self, who: Who, name: str) -> None:
        """Give a person a name, or with an empty one take it away.

        Raises:
            LibraryError: Somebody else has the name.
        """
        name_person(self._store, self._id(who), name)

    def merge(self, who: Who, *others: Who) -> None:
        """Say that others are the same person."""
        merge_people(self._store, self._id(who), [self._id(other) for other in others])

    def split(self, who: Who, faces: Iterable[int]) -> int:
        """Say that some of a person's faces, by number, are somebody else; returns who is new."""
        return split_person(self._store, self._id(who), faces)

    def forget(self, who: Who | None = None) -> int:
        """Delete a person with name, faces and vectors, or everybody, which also turns people off.

        The rows of the faces expert stay in the library's tracks. Returns how many people were deleted.
        """
        if who is None:
            return forget_everybody(self._store)
        forget_person(self._store, self._id(who))
        return 1

    def _id(self, who: Who) -> int:
        return who if isinstance(who, int) else find_person(self._store, who)
