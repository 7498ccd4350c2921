"""A real PostgreSQL and a real Milvus answer as the exact index does; `make test-servers` runs these."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from tests.example_library import ColourModel, build
from tests.index.server_cases import assert_same, items, queries

import wordreel
from wordreel.errors import IndexServerError
from wordreel.index import server as server_index
from wordreel.index import server_sync
from wordreel.index.exact import ExactIndex
from wordreel.index.milvus import MilvusServer
from wordreel.index.postgresql import FEWEST_HNSW, PostgreSQLServer
from wordreel.index.server import ServerIndex
from wordreel.index.vector_server import Layout
from wordreel.util.server_address import parse_address

pytestmark = pytest.mark.slow

N = 600


@pytest.fixture(autouse=True)
def _ask_the_server(monkeypatch):
    """For filters that leave few items too."""
    monkeypatch.setattr(server_index, "FEW", 0)


def table(real, name, vectors, mode="exact"):
    address = parse_address(f"{real.url}?mode={mode}")
    kind = PostgreSQLServer if address.scheme == "postgresql" else MilvusServer
    return kind(address, Layout.of(name, "model", *vectors.shape[1:]))


def index_of(server, vectors, available, rows=slice(None), in_library=None):
    clips = np.arange(len(vectors), dtype=np.int64)[::-1] * 2 + 1
    known = clips[rows] if in_library is None else clips[in_library]
    return ServerIndex(server, clips[rows], vectors[rows], available[rows], lambda: known)


def test_adds_deletes_and_restarts(real_server):
    vectors, available = items(N)
    server = table(real_server, "adds", vectors)
    index_of(server, vectors, available, slice(500))
    index = index_of(server, vectors, available)
    assert index.first_report.added == 100
    assert_same(index, vectors, available)
    alive = np.arange(N) % 5 > 0
    left = index_of(server, vectors, available, in_library=alive)
    assert left.first_report.deleted == N // 5
    assert_same(left, vectors, available, alive=alive)
    assert len(server.rows().clips) == alive.sum()
    real_server.stop()
    with pytest.raises(IndexServerError, match="start the server"):
        left.search(*queries(2), 5)
    real_server.start()
    assert_same(left, vectors, available, alive=alive)
    again = index_of(table(real_server, "adds", vectors), vectors, available, in_library=alive)
    assert (again.first_report.added, again.first_report.deleted) == (0, 0)
    server.drop()


def test_vectors_of_six_experts_of_384(real_server):
    vectors, available = items(300, experts=6, dim=384)
    server = table(real_server, "wide", vectors)
    assert_same(index_of(server, vectors, available), vectors, available)
    server.drop()


@pytest.mark.parametrize("after", [1, 4])
def test_a_server_killed_in_the_middle_of_an_add(real_server, after, monkeypatch):
    monkeypatch.setattr(server_sync, "BATCH_BYTES", 4_000)
    vectors, available = items(N, seed=after)
    server = table(real_server, f"killed {after}", vectors)
    put, count = server.put, 0

    def dying(rows):
        nonlocal count
        count += 1
        if count == after:
            threading.Timer(0.002, real_server.kill).start()
        put(rows)

    server.put = dying
    with pytest.raises(IndexServerError):
        index_of(server, vectors, available)
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.join()
    real_server.start()
    server = table(real_server, f"killed {after}", vectors)
    marker = server.read_marker()
    assert marker is None or not marker.complete
    index = index_of(server, vectors, available)
    assert_same(index, vectors, available)
    assert sorted(server.rows().clips.tolist()) == sorted((np.arange(N) * 2 + 1).tolist())
    server.drop()


def test_approximate_search_has_the_recall_that_is_measured(real_server):
    count = 2 * FEWEST_HNSW
    vectors, _ = items(count, experts=1, dim=64)
    available = np.ones((count, 1), bool)
    vectors = vectors + (vectors == 0).all(axis=2, keepdims=True) * vectors[:1]
    server = table(real_server, "graph", vectors, mode="hnsw")
    index = index_of(server, vectors, available)
    asked = queries(50, experts=1, dim=64)
    found, true = index.search(*asked, 10).rows, ExactIndex(vectors, available).search(*asked, 10).rows
    recall = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(found.tolist(), true.tolist(), strict=True)])
    assert not index.exact
    assert recall >= 0.95
    server.drop()


def test_a_library_searched_by_a_server(real_server, tmp_path):
    build(tmp_path / "films", tmp_path / "library")
    with wordreel.Library(tmp_path / "library", model=ColourModel(), index="local") as local:
        local.banks.build("words", [f"{a} {b}" for a in ("red", "green", "blue") for b in "xyz"], "made up")
        expected = {
            norm: [
                local.search(text, norm=norm, moments=True, limit=30) for text in ("red", "green", "blue sea")
            ]
            for norm in ("none", "is", "dis", "csls")
        }
    with wordreel.Library(tmp_path / "library", model=ColourModel()) as library:
        status = library.use_index(real_server.url)
        assert status.complete
        assert status.exact
        for norm, results in expected.items():
            for text, known in zip(("red", "green", "blue sea"), results, strict=True):
                got = library.search(text, norm=norm, moments=True, limit=30)
                assert [(str(hit.path), hit.start) for hit in got] == [
                    (str(hit.path), hit.start) for hit in known
                ]
                assert [hit.score for hit in got] == pytest.approx([hit.score for hit in known], abs=1e-6)
        removed = library.remove(tmp_path / "films" / "sea.mp4")
        assert not any(str(hit.path).endswith("sea.mp4") for hit in library.search("blue", limit=10))
        assert len(removed) == 1
        assert library.index_status().complete
        library.leave_index(drop=True)
        assert library.index_server() is None


def test_the_password_is_stored_nowhere(postgresql, tmp_path, monkeypatch):
    build(tmp_path / "films", tmp_path / "library")
    with wordreel.Library(tmp_path / "library", model=ColourModel()) as library:
        library.use_index(postgresql.url)
        assert "secret" not in str(library.index_server())
        assert library.search("red")
    for password, problem in (("", "WORDREEL_INDEX_PASSWORD"), ("wrong", "authentication failed")):
        monkeypatch.setenv("WORDREEL_INDEX_PASSWORD", password)
        with wordreel.Library(tmp_path / "library", model=ColourModel()) as library:
            with pytest.raises(IndexServerError, match=problem) as error:
                library.search("red")
            assert "wrong" not in str(error.value)
    monkeypatch.setenv("WORDREEL_INDEX_PASSWORD", "secret")
    with wordreel.Library(tmp_path / "library", model=ColourModel()) as library:
        assert library.search("red")
    for path in (tmp_path / "library").rglob("*"):
        assert not path.is_file() or b"secret" not in path.read_bytes()
