"""A library with damage on its disk: the catalogue and tracks, which are the truth, and every cache.

An input says which file is damaged and how. Truth that is damaged is reported or harmless, never another
error; a damaged cache gives the same hits as before, or is reported, and after `repair` gives them again.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from tests.example_library import ColourModel, build
from tests.fuzz.engine import Broken, Session, Target
from tests.fuzz.mutations import NUMBERS, VALUES, mutate_json

from wordreel import Library
from wordreel.catalogue.connection import NAME
from wordreel.catalogue.store import LibraryStore
from wordreel.embed.embed_library import embed_library
from wordreel.errors import WordreelError
from wordreel.index.base import QuerySample
from wordreel.index.cached import IndexCache
from wordreel.index.exact import ExactIndex
from wordreel.index.int8 import BUILDER
from wordreel.maintain.repair import repair
from wordreel.maintain.verify import verify
from wordreel.search.query_fields import SearchNorm
from wordreel.util.checksum import damaged_files

QUERIES: dict[str, SearchNorm] = {
    "red": "none",
    "blue dogs": "is",
}  # words, and how their hits are normalised
TEXTS = [f"{a} {b}" for a in ("red", "green", "blue") for b in ("sea", "dogs", "poppies", "meadow")]


class Model(ColourModel):
    """Answers with norms of its bank, too."""


def damage(path: Path, told: dict[str, Any]) -> None:
    """Cut, overwrite, append to or remove a file as told; nonsense does nothing."""
    with suppress(TypeError, ValueError, KeyError, OverflowError, AttributeError):
        data = bytearray(path.read_bytes())
        for at, text in told.get("put", []):
            part = bytes.fromhex(text)
            where = int(float(at) * len(data))
            if 0 <= where < len(data):
                data[where : where + len(part)] = part
        if told.get("cut") is not None:
            del data[max(0, int(float(told["cut"]) * len(data))) :]
        if told.get("more") is not None:
            data += bytes.fromhex(told["more"])
        path.write_bytes(data)
        if told.get("gone") is True:
            path.unlink()


def mutate_damage(rng: Random, data: bytes, corpus: Sequence[bytes]) -> bytes:
    """Usually another spot, sometimes another kind of damage."""
    if rng.random() < 0.15:
        return mutate_json(rng, data, corpus)
    told = json.loads(rng.choice(corpus))
    if not isinstance(told, dict):
        return mutate_json(rng, data, corpus)
    told = {"file": rng.randrange(64) if rng.random() < 0.7 else told.get("file")}
    kind = rng.randrange(8)
    if kind == 0:
        told["cut"] = rng.random() if rng.random() < 0.7 else 0.0
    elif kind == 1:
        told["gone"] = True
    elif kind == 2:
        told["more"] = rng.randbytes(rng.randrange(20)).hex()
    else:
        told["put"] = [[_spot(rng), _bytes(rng).hex()] for _ in range(rng.randrange(1, 5))]
    return json.dumps(told).encode()


def _spot(rng: Random) -> float:
    return rng.random() ** rng.choice((1, 1, 6))


def _bytes(rng: Random) -> bytes:
    width = rng.choice((1, 1, 2, 4, 8))
    if rng.random() < 0.5:
        return rng.randbytes(width)
    return (rng.choice(NUMBERS) % 2 ** (8 * width)).to_bytes(width, rng.choice(("big", "little")))


def hits_of(library: Library) -> list[Any]:
    """What searches return, plain and normalised, to compare."""
    return [
        (text, str(hit.path), round(hit.start, 6), round(hit.end, 6), round(hit.score, 4))
        for text, norm in QUERIES.items()
        for hit in library.search(text, norm=norm, bank=None if norm == "none" else "colours", limit=3)
    ]


def make(folder: Path) -> tuple[Path, list[Any]]:
    """A library with a fitted bank, and its hits."""
    build(folder / "films", folder / "pristine")
    with Library(folder / "pristine", model=Model()) as library:
        library.banks.build("colours", TEXTS, "a test")
        hits_of(library)
    with Library(folder / "pristine", model=Model()) as library:
        expected = hits_of(library)
    with closing(sqlite3.connect(folder / "pristine" / NAME)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    return folder / "pristine", expected


WHOLE = [json.dumps({"file": 0, "put": []}).encode()]


def parsed(data: bytes) -> dict[str, Any]:
    try:
        told = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}


def chosen(files: Sequence[Path], told: dict[str, Any]) -> Path:
    number = told.get("file", 0)
    return files[number % len(files)] if isinstance(number, int) else files[0]


def cache_session(folder: Path) -> Session:
    pristine, expected = make(folder)
    files = sorted(path.relative_to(pristine) for path in (pristine / "cache").rglob("*") if path.is_file())
    copy = folder / "copy"

    def run(data: bytes) -> None:
        told = parsed(data)
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(pristine, copy)
        damage(copy / chosen(files, told), told)
        error: WordreelError | None = None
        try:
            with Library(copy, model=Model()) as library:
                if hits_of(library) == expected:
                    return
        except WordreelError as raised:
            error = raised
            if error.next_step is None:
                raise Broken(f"a damaged cache without a next step: {error}") from None
        with LibraryStore.open(copy) as store:
            problems = verify(store)
            if error is None and all(problem.note for problem in problems):
                raise Broken(f"damage to {chosen(files, told)} changed the hits, and nothing says so")
            repair(store, problems)
            embed_library(store, Model())
        with Library(copy, model=Model()) as library:
            if hits_of(library) != expected:
                raise Broken(f"damage to {chosen(files, told)} outlives its repair")

    return Session(WHOLE, run, mutate_damage)


def truth_session(folder: Path) -> Session:
    pristine, expected = make(folder)
    files = [
        Path(NAME),
        *(path.relative_to(pristine) for path in sorted((pristine / "tracks").rglob("*.safetensors"))),
    ]
    copy = folder / "copy"

    def run(data: bytes) -> None:
        told = parsed(data)
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(pristine, copy)
        # Half of the damage goes to the catalogue, which is one file beside many tracks.
        number = told.get("file", 0)
        target = files[number // 2 % len(files)] if isinstance(number, int) and number % 2 else files[0]
        damage(copy / target, told)
        if target != files[0]:
            shutil.rmtree(copy / "cache")  # what was computed from the track before
        walk(copy, None if target == files[0] else expected)

    return Session(WHOLE, run, mutate_damage)


def walk(copy: Path, expected: list[Any] | None) -> None:
    """Open, look, search, verify. With `expected`, other hits must be explained by `verify`."""
    with Library(copy, create=False, model=Model()) as library:
        store = library.store
        store.stats()
        store.failures()
        for video in library.videos():
            store.words(video.content)
            store.clips(video.content)
        problems = verify(store)
        embed_library(store, Model())
        found = hits_of(library)
        library.banks.list()
    if expected is not None and found != expected and not problems:
        raise Broken("a damaged track changed the hits, and nothing says so")


def value_session(folder: Path) -> Session:
    """Values of the wrong type and size in the catalogue's tables, as a stranger's library may hold them."""
    pristine, _ = make(folder)
    with closing(sqlite3.connect(pristine / NAME)) as connection:
        tables = [
            name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        columns = [
            (table, row[1])
            for table in tables
            if not table.startswith(("sqlite_", "words_fts"))
            for row in connection.execute(f"PRAGMA table_info({table})")
        ]
    copy = folder / "copy"

    def run(data: bytes) -> None:
        told = parsed(data)
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(pristine, copy)
        with closing(sqlite3.connect(copy / NAME)) as connection:
            connection.execute("PRAGMA ignore_check_constraints = ON")
            for number, value in told.get("set", []) if isinstance(told.get("set"), list) else []:
                table, column = columns[number % len(columns)]
                with suppress(sqlite3.Error, OverflowError, UnicodeEncodeError):
                    connection.execute(f"UPDATE OR IGNORE {table} SET {column} = ?", (value,))  # noqa: S608
            connection.commit()
        walk(copy, None)

    def mutate(rng: Random, data: bytes, corpus: Sequence[bytes]) -> bytes:
        plain = [value for value in VALUES if not isinstance(value, list | dict)]
        changes = [[rng.randrange(len(columns)), rng.choice(plain)] for _ in range(rng.choice((1, 1, 2)))]
        return json.dumps({"set": changes}).encode()

    return Session([b'{"set": []}'], run, mutate)


def index_session(folder: Path) -> Session:
    """Files of an index: opened and right, or not opened."""
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((300, 2, 16)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
    available = rng.random((300, 2)) < 0.9
    available[:, 0] = True
    vectors[~available] = 0
    queries = QuerySample(vectors[:5], np.ones((5, 2), np.float32))
    exact = ExactIndex(vectors, available).search(queries.vectors, queries.weights, 5)
    IndexCache(folder / "pristine", 1).build(BUILDER, vectors, available)
    files = sorted(
        path.relative_to(folder / "pristine") for path in (folder / "pristine").rglob("*") if path.is_file()
    )
    copy = folder / "copy"

    def run(data: bytes) -> None:
        told = parsed(data)
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(folder / "pristine", copy)
        damage(copy / chosen(files, told), told)
        cache = IndexCache(copy, 1)
        index = cache.open(BUILDER, vectors, available)
        if index is None:
            return
        found = index.search(queries.vectors, queries.weights, 5)
        built = cache.read(BUILDER.name)
        if not np.array_equal(found.rows, exact.rows) and not (built and damaged_files(copy / built.folder)):
            raise Broken(f"damage to {chosen(files, told)} changed the ranking, and nothing says so")

    return Session(WHOLE, run, mutate_damage)


TARGETS = (
    Target("caches", "damaged embeddings, columns, banks", cache_session, few=8, guided=False),
    Target("truth", "damaged SQLite catalogue and tracks", truth_session, few=8, guided=False),
    Target("catalogue-values", "wrong values in the catalogue", value_session, few=4, guided=False),
    Target("index-files", "damaged files of an index", index_session, few=10, guided=False),
)
