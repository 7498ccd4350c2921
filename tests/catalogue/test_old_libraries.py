"""Libraries that the code of earlier schemas wrote open, migrate, are searched, added to and verified."""

import shutil
import sqlite3
import zipfile
from pathlib import Path

import numpy as np
import pytest
from tests.catalogue.old_libraries.make import BANK
from tests.digest import digest_of
from tests.fakes import FakeFence, experts
from tests.search.conftest import ColourModel

from wordreel.catalogue import connection as migrations_module
from wordreel.catalogue.connection import NAME, migrations
from wordreel.catalogue.jobs import unfinished_jobs, upload_names
from wordreel.catalogue.store import LibraryStore
from wordreel.embed.embed_library import embed_library
from wordreel.errors import LibraryError
from wordreel.ingest.add import add
from wordreel.library import Library
from wordreel.maintain.verify import verify

ARCHIVES = Path(__file__).parent / "old_libraries"
SCHEMAS = [2, 5, 6, 7, 8, 9, 10, 11]
NEWEST = len(migrations())
KNOWN = {"poppies.mp4", "meadow.mp4", "part/sea.mp4", "song.mp3", "still.png"}
QUERIES = ("red", "green dogs", "blue", "dogs number 5")


@pytest.fixture(params=SCHEMAS)
def schema(request):
    return request.param


@pytest.fixture
def old(schema, tmp_path):
    """The library of a schema, and its media somewhere else than they were."""
    with zipfile.ZipFile(ARCHIVES / f"schema{schema}.zip") as archive:
        archive.extractall(tmp_path)
    with sqlite3.connect(tmp_path / "library" / NAME) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (schema,)
    connection.close()
    return tmp_path / "library"


@pytest.fixture(scope="module")
def twin(tmp_path_factory):
    """What a new library of the same files finds: every hit of every query."""
    root = tmp_path_factory.mktemp("twin")
    with zipfile.ZipFile(ARCHIVES / "schema8.zip") as archive:
        archive.extractall(root)
    (root / "media" / "part" / "gone.mp4").unlink()
    with Library(root / "new", model=ColourModel()) as library:
        add(library.store, [root / "media"], experts(), FakeFence())
        library.banks.build("mine", BANK, "a test")
        return found(library, root / "media")


def found(library, media):
    return {
        (text, norm): [
            (str(Path(hit.path).relative_to(media)), hit.start, hit.end, hit.score) for hit in hits
        ]
        for text in QUERIES
        for norm in ("none", "csls")
        for hits in [library.search(text, norm=norm, limit=50)]
    }


def assert_alike(one, other):
    assert one.keys() == other.keys()
    for key, hits in one.items():
        assert sorted(hit[:3] for hit in hits) == sorted(hit[:3] for hit in other[key])
        scores = [[hit[3] for hit in sorted(side)] for side in (hits, other[key])]
        np.testing.assert_allclose(*scores, atol=1e-5)


def test_no_earlier_schema_is_left_out():
    assert SCHEMAS[-1] >= NEWEST - 1, "make the archive of the schema before the newest, and name it here"


def test_what_it_holds_is_still_there(old, schema, twin):
    with Library(old, model=ColourModel()) as library:
        store = library.store
        assert store.catalogue.rows("PRAGMA user_version") == [(NEWEST,)]
        assert {str(Path(file.path).relative_to("/films/media")) for file in store.files()} == KNOWN
        assert [Path(failure.path).name for failure in store.failures()] == ["broken.mp4"]
        assert {problem.kind for problem in verify(store)} == {"absent"}
        meadow = store.file("/films/media/meadow.mp4").content
        if schema >= 5:
            assert list(library.banks.show("mine").texts) == BANK
            assert [(row.content, row.text) for row in store.captions()] == [(meadow, "a green meadow")]
            assert store.setting("model") == "bridge"
        else:
            library.banks.build("mine", BANK, "a test")
        if schema >= 6:
            assert [job.request for job in unfinished_jobs(store)] == [{"paths": ["/films/media"]}]
            assert upload_names(store) == {meadow: "my meadow.mp4"}
        assert_alike(found(library, "/films/media"), twin)


def test_its_files_are_found_where_they_are_now(old, tmp_path, twin):
    """Added from another folder, known contents are not decoded again; what was removed comes back new."""
    fence, media = FakeFence(), tmp_path / "media"
    with Library(old, model=ColourModel()) as library:
        store = library.store
        before = {clip.id for clip in store.clips()}
        newest = store.catalogue.one("SELECT max(seq) FROM sqlite_sequence WHERE name = 'clips'")[0]
        report = add(store, [media], experts(), fence)
        assert {Path(new).relative_to(media).as_posix() for _, new in report.moved} == KNOWN
        assert [Path(path).name for path in report.added] == ["gone.mp4"]
        assert {Path(path).name for path in fence.streamed} == {"gone.mp4"}
        embed_library(store, ColourModel())
        fresh = {clip.id for clip in store.clips()} - before
        assert fresh
        assert min(fresh) > newest
        store.remove([media / "part" / "gone.mp4"])
        store.remove(["/films/media"])  # the failure
        assert verify(store) == []
        if not library.banks.list():
            library.banks.build("mine", BANK, "a test")
        assert_alike(found(library, media), twin)


def test_an_interrupted_migration_goes_on(old, schema, tmp_path, monkeypatch):
    """Stopped at any statement, a catalogue is at a version between; the next open brings it to the last."""
    statements = migrations_module._statements
    missing = [statement for step in migrations()[schema:] for statement in statements(step.sql)]
    copies = []
    for done in range(len(missing)):
        copies.append(tmp_path / f"stopped{done}")
        copies[-1].mkdir()
        shutil.copy(old / NAME, copies[-1])
        monkeypatch.setattr(migrations_module, "_statements", first_statements(statements, done))
        with pytest.raises(KeyboardInterrupt):
            LibraryStore.open(copies[-1])
    monkeypatch.setattr(migrations_module, "_statements", statements)
    with LibraryStore.open(old) as store:
        expected = contents(store)
    for copy in copies:
        with LibraryStore.open(copy) as store:
            assert contents(store) == expected


def first_statements(statements, most):
    left = iter(range(most))

    def some(sql):
        for statement in statements(sql):
            if next(left, None) is None:
                raise KeyboardInterrupt
            yield statement

    return some


def contents(store):
    tables = store.catalogue.rows("SELECT type, name, sql FROM sqlite_master ORDER BY 1, 2")
    return digest_of(store), tables, store.catalogue.rows("PRAGMA user_version")


def test_a_newer_library_is_refused_with_what_to_do(old):
    with sqlite3.connect(old / NAME) as connection:
        connection.execute(f"PRAGMA user_version = {NEWEST + 1}")
    connection.close()
    before = (old / NAME).read_bytes()
    with pytest.raises(LibraryError, match=f"version {NEWEST + 1}, this one knows {NEWEST}") as caught:
        Library(old)
    assert caught.value.next_step.text == "upgrade wordreel to use it"
    assert (old / NAME).read_bytes() == before
