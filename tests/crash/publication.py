"""The operations of a published library: `push` by its owner, `pull` by a replica.

Fault points are the messages to PostgreSQL too. Each operation has a database of its own, which is put back
before every trial.
"""

from __future__ import annotations

import shutil
from typing import Any

from tests.crash.library_state import library_state, open_library
from tests.crash.operations import Operation, Place, add_all, base, film, grow_bank
from tests.crash.server import address

import wordreel
from wordreel.catalogue.store import REPLICA, LibraryStore
from wordreel.maintain.publication import follow
from wordreel.util.server_address import parse_published

FIRST_PUSH, SECOND_PUSH, FIRST_PULL, SECOND_PULL = "first_push", "second_push", "first_pull", "second_pull"


def change(place: Place, library: wordreel.Library) -> None:
    """What the owner does between two publications."""
    film(place, "new", 14.0, 11)
    library.remove(place.media / "sea.mp4")
    add_all(place, library, "new")
    grow_bank(place, library)


def before_second_push(place: Place) -> None:
    base(place)
    with open_library(place.library) as library:
        library.publish(address(SECOND_PUSH))
        change(place, library)


def published_state(database: str, place: Place) -> Any:
    """The library, and what a replica gets that follows it now; None where nothing is published."""
    server, replica = parse_published(address(database)), place.box.parent / "replica"
    shutil.rmtree(replica, ignore_errors=True)
    with LibraryStore.create_or_open(replica) as store:
        try:
            generation = follow(store, server).generation
        except wordreel.LibraryError as error:
            if "is published at" not in str(error):
                raise
            return library_state(place.library), None
    state = library_state(replica)
    state["settings"] = [
        row for row in state["settings"] if row[0] != REPLICA
    ]  # names the library's identity
    return library_state(place.library), generation, state


def original(place: Place) -> Place:
    """Where the library is that a replica follows."""
    return Place(place.media / "original", place.media)


def before_first_pull(place: Place) -> None:
    base(original(place))
    with open_library(original(place).library) as library:
        library.publish(address(FIRST_PULL))
    open_library(place.library, create=True).close()


def before_second_pull(place: Place) -> None:
    base(original(place))
    with open_library(original(place).library) as library:
        library.publish(address(SECOND_PULL))
        with open_library(place.library, create=True) as replica:
            replica.follow(address(SECOND_PULL))
        change(original(place), library)
        library.publish(address(SECOND_PULL))


def push(name: str, database: str, prepare: Any) -> Operation:
    return Operation(
        name,
        prepare,
        lambda place, library: library.publish(address(database)),
        state=lambda place: published_state(database, place),
        database=database,
    )


def pull(name: str, database: str, prepare: Any) -> Operation:
    return Operation(
        name, prepare, lambda place, library: library.follow(address(database)), database=database
    )


WITH_POSTGRESQL = (
    push("first push", FIRST_PUSH, base),
    push("second push", SECOND_PUSH, before_second_push),
    pull("first pull", FIRST_PULL, before_first_pull),
    pull("second pull", SECOND_PULL, before_second_pull),
)
