"""The operations by which owners say what is in their videos: tags, notes, saved searches, people."""

from __future__ import annotations

from tests.crash.library_state import open_library
from tests.crash.operations import Operation, Place, base
from tests.face_tracks import put_faces

import wordreel
from wordreel.search.query import Query


def tag(place: Place, library: wordreel.Library) -> None:
    library.annotations.tag(place.media / "sea.mp4", "beach", start=2.0, end=9.0)


def note(place: Place, library: wordreel.Library) -> None:
    library.annotations.note(place.media / "sea.mp4", "the summer of the boat")


def tag_and_note(place: Place, library: wordreel.Library) -> None:
    tag(place, library)
    note(place, library)


def save_search(place: Place, library: wordreel.Library) -> None:
    library.saved.save("long and red", Query.build("red", min_duration=20), replace=True)


def before_grouping(place: Place) -> None:
    """Anna is in both films, Bob in one."""
    base(place)
    with open_library(place.library) as library:
        put_faces(library.store, place.media / "meadow.mp4", (0, 0, 0), (1, 0, 5))
        put_faces(library.store, place.media / "sea.mp4", (0, 1, 3))


def turn_on(place: Place, library: wordreel.Library) -> None:
    """The first step of `group_faces`."""
    with library.store.editing():
        library.store.catalogue.run("INSERT OR REPLACE INTO settings VALUES ('people', 'on')")


def group_faces(place: Place, library: wordreel.Library) -> None:
    library.people.turn_on()


def before_naming(place: Place) -> None:
    before_grouping(place)
    with open_library(place.library) as library:
        library.people.turn_on()


def name_person(place: Place, library: wordreel.Library) -> None:
    library.people.name(library.people.list()[0].id, "Anna")


ANNOTATING = (
    Operation("tag and note", base, tag_and_note, (tag, note)),
    Operation("save a search", base, save_search),
    Operation("group people", before_grouping, group_faces, (turn_on, group_faces)),
    Operation("name a person", before_naming, name_person),
)
