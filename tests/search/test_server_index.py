"""A library searched by a server: chosen, remembered, complete, left again."""

from __future__ import annotations

import pytest
from tests.example_library import ColourModel, build
from tests.index.fake_vector_server import FakeServer

import wordreel
from wordreel.catalogue.store import REPLICA
from wordreel.errors import IndexServerError, LibraryError, WordreelError
from wordreel.index import server as server_module
from wordreel.search import server_index

ADDRESS = "postgresql://me:secret@db.example.org/films"


@pytest.fixture
def server(monkeypatch):
    """A server in memory, whatever the address."""
    fake = FakeServer()
    monkeypatch.setattr(server_index, "connect", lambda address, store, model: fake)
    monkeypatch.setattr(server_module, "FEW", 0)
    return fake


@pytest.fixture
def folder(tmp_path):
    build(tmp_path / "films", tmp_path / "library")
    return tmp_path / "library"


def opened(folder, index=None):
    return wordreel.Library(folder, model=ColourModel(), index=index)


def hits(library, norm="none"):
    found = library.search("green", moments=True, limit=50, norm=norm)
    return [(str(hit.path), hit.start, pytest.approx(hit.score, abs=1e-6)) for hit in found]


def test_a_server_answers_as_this_machine_does(server, folder):
    with opened(folder) as library:
        library.banks.build("words", ["red x", "green y", "blue z"], "made up")
        expected = {norm: hits(library, norm) for norm in ("none", "is", "dis", "csls")}
        status = library.use_index(ADDRESS)
        assert (status.complete, status.exact, status.sent.added) == (True, True, len(server.table))
        assert {norm: hits(library, norm) for norm in expected} == expected


def test_the_address_is_remembered_without_its_password(server, folder):
    with opened(folder) as library:
        library.use_index(ADDRESS)
        assert library.store.setting("index") == "postgresql://me@db.example.org:5432/films"
    with opened(folder) as again, opened(folder, index="local") as local:
        assert str(again.index_server()) == "postgresql://me@db.example.org:5432/films"
        assert local.index_server() is None


def test_removed_videos_leave_the_server_with_the_next_search(server, folder):
    with opened(folder) as library:
        before = library.use_index(ADDRESS).clips
        library.remove(folder.parent / "films" / "sea.mp4")
        assert not library.index_status().complete
        assert all(not path.endswith("sea.mp4") for path, *_ in hits(library))
        status = library.index_status()
        assert status.complete
        assert status.clips == len(server.table) < before


def test_a_library_can_leave_its_server(server, folder):
    with opened(folder) as library:
        with pytest.raises(WordreelError, match="not searched by a server"):
            library.leave_index()
        library.use_index(ADDRESS)
        library.leave_index(drop=True)
        assert not server.table
        assert library.index_status() is None


def test_a_dead_server_is_an_error_and_not_an_empty_answer(server, folder):
    with opened(folder, index=ADDRESS) as library:
        server.dies_at = 0
        with pytest.raises(IndexServerError):
            library.search("green")


def test_the_recall_of_an_approximate_server_is_measured_and_remembered(server, folder):
    server.exact = False
    with opened(folder) as library:
        assert library.use_index(ADDRESS).recall is None  # there is no bank
        library.banks.build("words", ["red x", "green y", "blue z"], "made up")
        recall = library.use_index(ADDRESS).recall
        assert (recall.value, recall.queries) == (1.0, 3)
        assert library.index_status().recall == recall


def test_a_replica_is_not_changed(folder):
    with opened(folder) as library:
        library.store.set_setting(REPLICA, '{"library": "x", "generation": 1}')
        with pytest.raises(LibraryError, match="replica"):
            library.remove(folder.parent / "films" / "sea.mp4")
        with pytest.raises(LibraryError, match="replica"):
            library.add(folder.parent / "films")
        with pytest.raises(LibraryError, match="replica"):
            library.publish(ADDRESS)
