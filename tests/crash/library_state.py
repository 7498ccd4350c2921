"""What a library holds and answers, in values that can be compared across processes."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from tests.digest import digest_of
from tests.search.conftest import ColourModel

import wordreel
from wordreel.catalogue.connection import NAME
from wordreel.catalogue.jobs import latest_jobs
from wordreel.catalogue.store import LibraryStore
from wordreel.maintain.backup import IDENTITY
from wordreel.maintain.verify import verify
from wordreel.maintain.wrong_values import recompute_embeddings
from wordreel.search.query_fields import SearchNorm

QUERY = "blue and red"
DRAWN = (IDENTITY,)  # settings that are drawn at random


def open_library(folder: Path, create: bool = False) -> wordreel.Library:
    return wordreel.Library(folder, create=create, model=ColourModel())


def library_state(folder: Path) -> Any:
    """Everything that a library holds but clocks and ids; None where there is none.

    Rows of the catalogue, the bytes of the tracks that they name, banks, settings, jobs, what owners wrote.
    """
    if not (folder / NAME).is_file():
        return None
    with LibraryStore.open(folder) as store:
        tracks = {
            row.hash: hashlib.sha256(store.track_files.read(row.hash)).hexdigest()
            for row in store.tracks()
            if row.hash is not None
        }
        banks = store.catalogue.rows(
            "SELECT b.name, b.source, q.text, q.source FROM banks b LEFT JOIN bank_queries q "
            "ON q.bank = b.name ORDER BY 1, 3"
        )
        annotations = store.catalogue.rows(
            "SELECT content, kind, text, start, end FROM annotations ORDER BY 1, 2, 3, 4"
        )
        people = store.catalogue.rows(
            "SELECT p.name, f.content, f.start, f.end FROM people p JOIN person_faces f ON f.person = p.id "
            "ORDER BY 1, 2, 3"
        )
        settings = store.catalogue.rows("SELECT name, value FROM settings ORDER BY name")
        return {
            "catalogue": digest_of(store),
            "files": [(file.path, file.content) for file in store.files()],
            "tracks": tracks,
            "banks": banks,
            "annotations": annotations,
            "saved searches": store.catalogue.rows("SELECT name, query FROM saved_searches ORDER BY name"),
            "people": people,
            "settings": [row for row in settings if row[0] not in DRAWN],
            "jobs": [
                (job.id, job.kind, job.state, job.progress, job.report, job.error)
                for job in latest_jobs(store)
            ],
        }


def problems_and_answers(folder: Path) -> tuple[list[str], Any]:
    """What is wrong with a library, and what searches answer; None for that where there is no library."""
    if not (folder / NAME).is_file():
        return [], None
    with open_library(folder) as library:
        return _problems(library.store), _answers(library)


def _problems(store: LibraryStore) -> list[str]:
    """What `wordreel verify` finds wrong, notes aside, and embeddings that are not those of the tracks."""
    found = [*verify(store), *recompute_embeddings(store, ColourModel())]
    return [f"{problem.kind}: {problem.what}" for problem in found if not problem.note]


def _answers(library: wordreel.Library) -> Any:
    """Hits with their moments and scores, plain and with every bank."""
    if not library.store.has_tracks(ColourModel.experts):
        return []
    norms: list[tuple[SearchNorm, str | None]] = [
        ("none", None),
        *(("is", row.name) for row in library.banks.list()),
    ]
    return [
        (bank, str(hit.path), hit.start, hit.end, round(hit.score, 4))
        for norm, bank in norms
        for hit in library.search(QUERY, norm=norm, bank=bank, beta=20.0, moments=True, limit=10)
    ]
