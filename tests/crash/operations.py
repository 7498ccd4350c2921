"""What is stopped at every fault point: each operation with what it starts from and the states it may leave.

An operation runs in a box, a folder with `library` and whatever else it writes; media lie outside. `run` is
the command, and the same call again finishes it. `steps` lead from one state that a stopped run may leave to
the next; without them, that is before or after.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.catalogue.test_migrations import at_version
from tests.crash.library_state import library_state, open_library
from tests.fakes import Colour, FakeFence, Shots, Talk, write_media
from tests.lab.datasets.trees.published import write_ce
from tests.search.conftest import ColourModel

import wordreel
from wordreel.banks.search_index import build_index
from wordreel.catalogue import jobs
from wordreel.catalogue.connection import NAME
from wordreel.embed.embed_library import embedding_cache
from wordreel.embed.switch_model import switch
from wordreel.index import cached
from wordreel.ingest.add import add
from wordreel.lab.datasets.trees.detect import open_tree
from wordreel.lab.datasets.trees.importer import import_tree
from wordreel.maintain.backup import restore

FILMS = {"meadow": (12.0, 482), "sea": (25.0, 4060)}
WORDS = ("red x", "green y", "blue z", "red and blue", "nothing")
SERVER = "one server"
NEWEST = 1_700_000_000  # seconds since 1970


@dataclass(frozen=True)
class Place:
    """Where an operation works: `box` is copied, written and damaged, `media` is only read."""

    box: Path
    media: Path

    @property
    def library(self) -> Path:
        return self.box / "library"


Step = Callable[[Place, Any], object]  # a place, and its open library, or None


@dataclass(frozen=True)
class Operation:
    name: str
    prepare: Callable[[Place], object]
    run: Step
    steps: tuple[Step, ...] = ()
    state: Callable[[Place], Any] = lambda place: library_state(place.library)
    creates: bool = False  # the library may not be there before
    opens: bool = True  # the library is opened first
    database: str = ""  # of PostgreSQL, that it reads or writes


def film(place: Place, name: str, seconds: float = 30.0, seed: int = 7, **extra: Any) -> Path:
    """A film whose time follows from its seed: the newest are added first, those with small seeds."""
    path = write_media(place.media / f"{name}.mp4", seconds=seconds, seed=seed, **extra)
    os.utime(path, (NEWEST - seed, NEWEST - seed))
    return path


def add_all(place: Place, library: wordreel.Library, *names: str) -> None:
    """`wordreel add`: analyse, embed, bring the banks up to date."""
    paths = [place.media / f"{name}.mp4" for name in names] or [place.media]
    add(library.store, paths, [Colour(), Talk(), Shots()], FakeFence(), jobs=1)
    library.embed()
    library.banks.update()


def base(place: Place) -> None:
    """Two films, embedded, and a bank with a fitted normalisation."""
    for name, (seconds, seed) in FILMS.items():
        film(place, name, seconds, seed)
    with open_library(place.library, create=True) as library:
        add_all(place, library)
        library.banks.build("words", WORDS, "made up")
        library.search("red", norm="is", bank="words", beta=20.0)


def nothing(place: Place) -> None:
    """An empty box."""


# Adding


def before_first_add(place: Place) -> None:
    open_library(place.library, create=True).close()
    for name in FILMS:
        film(place, name, *FILMS[name])


def before_add(place: Place) -> None:
    base(place)
    film(place, "new", 14.0, 11)
    film(place, "torn", seed=13, bad="broken")


def before_change(place: Place) -> None:
    base(place)
    film(place, "meadow", 13.0, 12)


def before_move(place: Place) -> None:
    base(place)
    (place.media / "meadow.mp4").rename(place.media / "field.mp4")


def steps_of(*names: str) -> tuple[Step, ...]:
    return tuple(lambda place, library, name=name: add_all(place, library, name) for name in names)


# Embeddings


def before_compaction(place: Place) -> None:
    base(place)
    with open_library(place.library) as library:
        library.remove(place.media / "meadow.mp4")


def compact(place: Place, library: wordreel.Library) -> None:
    embedding_cache(library.store, ColourModel()).compact()


class OtherModel(ColourModel):
    name = "other colours"
    fingerprint = "fedcba9876543210"


def use(place: Place, library: wordreel.Library) -> None:
    switch(library.store, OtherModel(), "other")


def index(place: Place, library: wordreel.Library) -> None:
    """Build the index of a large library, and search by it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cached, "EXACT_BYTES", 0)
        build_index(library.store, ColourModel())
        assert len(library.search("red", limit=2)) == 2


# Banks


def grow_bank(place: Place, library: wordreel.Library) -> None:
    library.banks.add("words", ["a green field", "blue sky"], "made up later")


def shrink_bank(place: Place, library: wordreel.Library) -> None:
    library.banks.remove("words", [WORDS[0], WORDS[4]])


def build_bank(place: Place, library: wordreel.Library) -> None:
    if "more" not in [row.name for row in library.banks.list()]:  # `bank build` refuses a name that is taken
        library.banks.build("more", WORDS[:3], "made up")
    library.search("red", norm="is", bank="more", beta=20.0)


def delete_bank(place: Place, library: wordreel.Library) -> None:
    if "words" in [row.name for row in library.banks.list()]:
        library.banks.delete("words")


# Import, backup, jobs


def before_import(place: Place) -> None:
    base(place)
    write_ce(place.media / "MSRVTT")


def import_features(place: Place, library: wordreel.Library) -> None:
    experts = ("face", "audio", "speech")
    import_tree(library.store, open_tree(place.media / "MSRVTT"), experts=experts)


def before_second_backup(place: Place) -> None:
    base(place)
    with open_library(place.library) as library:
        library.backup(place.box / "backup")
        film(place, "new", 14.0, 11)
        library.remove(place.media / "sea.mp4")
        add_all(place, library, "new")


def before_restore(place: Place) -> None:
    base(place)
    with open_library(place.library) as library:
        library.backup(place.media / "backup")
    shutil.rmtree(place.library)


def make_backup(place: Place, library: wordreel.Library) -> None:
    library.backup(place.box / "backup")


def backup_state(place: Place) -> Any:
    """The library, and what its backup would give back; None where there is none yet."""
    back = place.box.parent / "restored"
    shutil.rmtree(back, ignore_errors=True)
    if not (place.box / "backup" / NAME).is_file():
        return library_state(place.library), None
    report = restore(place.box / "backup", back)
    return library_state(place.library), report.damaged, library_state(back)


def restore_backup(place: Place, library: None) -> None:
    if not (place.library / NAME).is_file():
        restore(place.media / "backup", place.library)


def queue_job(place: Place, library: wordreel.Library) -> None:
    if not jobs.latest_jobs(library.store):
        jobs.add_job(library.store, "add", "films", {"paths": ["films"]})


def claim_job(place: Place, library: wordreel.Library) -> None:
    jobs.claim_job(library.store, SERVER)


def save_progress(place: Place, library: wordreel.Library) -> None:
    for job in jobs.unfinished_jobs(library.store):
        jobs.renew_claim(library.store, job.id, SERVER)
        jobs.save_progress(library.store, job.id, {"done": 1, "total": 2})


def end_job(place: Place, library: wordreel.Library) -> None:
    for job in jobs.unfinished_jobs(library.store):
        jobs.end_job(library.store, job.id, jobs.DONE, {"added": 1})


def run_job(place: Place, library: wordreel.Library) -> None:
    for step in (queue_job, claim_job, save_progress, end_job):
        step(place, library)


# Migration


def before_migration(place: Place) -> None:
    place.library.mkdir(parents=True)
    at_version(place.library / NAME, 1)


def only_open(place: Place, library: wordreel.Library) -> None:
    """Opening is all there is to it."""


OPERATIONS = (
    Operation("create a library", nothing, only_open, creates=True),
    Operation("first add", before_first_add, add_all, steps_of("meadow", "sea")),
    Operation("add", before_add, add_all, steps_of("new", "torn")),
    Operation("add a changed file", before_change, add_all),
    Operation("add a moved file", before_move, add_all),
    Operation("remove", base, lambda place, library: library.remove(place.media / "sea.mp4")),
    Operation("compact", before_compaction, compact),
    Operation("embed again", base, lambda place, library: library.reindex()),
    Operation("use another model", base, use),
    Operation("build an index", base, index),
    Operation("build a bank", base, build_bank),
    Operation("add to a bank", base, grow_bank),
    Operation("remove from a bank", base, shrink_bank),
    Operation("delete a bank", base, delete_bank),
    Operation("import", before_import, import_features),
    Operation("first backup", base, make_backup, state=backup_state),
    Operation("second backup", before_second_backup, make_backup, state=backup_state),
    Operation("restore", before_restore, restore_backup, opens=False),
    Operation("run a job", base, run_job, (queue_job, claim_job, save_progress, end_job)),
    Operation("migrate", before_migration, only_open),
)
