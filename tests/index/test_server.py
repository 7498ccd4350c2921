"""An index on a server answers as the exact one here, whatever happens to the server."""

from __future__ import annotations

import numpy as np
import pytest
from tests.index.fake_vector_server import FakeServer
from tests.index.server_cases import assert_same, biases, items, queries

from wordreel.errors import IndexServerError
from wordreel.index import server as server_index
from wordreel.index import server_sync
from wordreel.index.base import Correction
from wordreel.index.exact import ExactIndex
from wordreel.index.server import ServerIndex, id_ranges
from wordreel.index.vector_server import SLOTS

N = 120
CLIPS = np.arange(N, dtype=np.int64)[::-1] * 3 + 7  # ids need not be in the order of rows


@pytest.fixture(autouse=True)
def _ask_the_server(monkeypatch):
    """For filters that leave one item too."""
    monkeypatch.setattr(server_index, "FEW", 0)


def index_of(server, count=N, in_library=None, first=0):
    vectors, available = items(N)
    some = slice(first, count)
    known = CLIPS[some] if in_library is None else in_library
    return ServerIndex(server, CLIPS[some], vectors[some], available[some], lambda: known)


def test_answers_as_the_exact_index():
    assert_same(index_of(FakeServer()), *items(N))


def test_a_query_that_wants_no_expert_scores_nothing():
    vectors, weights = queries(2)
    assert (index_of(FakeServer()).search(vectors, 0 * weights, 5).scores == 0).all()


def test_few_items_are_scored_here(monkeypatch):
    monkeypatch.setattr(server_index, "FEW", N)
    assert_same(index_of(FakeServer()), *items(N))


def test_more_results_than_the_server_returns_come_from_here():
    server = FakeServer()
    server.max_k = 20
    assert_same(index_of(server), *items(N), k=40)


def test_only_differences_travel():
    server = FakeServer()
    index_of(server, 100)
    assert server.written() == 100
    index_of(server, 100)
    assert server.written() == 0
    index_of(server)
    assert server.written() == 20
    assert_same(index_of(server, in_library=CLIPS[10:]), *items(N), alive=np.arange(N) >= 10)
    assert sorted(server.table) == sorted(CLIPS[10:].tolist())


@pytest.mark.parametrize("dies_at", range(0, 12, 2))
def test_a_killed_server_is_never_searched_half_full_and_the_same_call_finishes(dies_at, monkeypatch):
    monkeypatch.setattr(server_sync, "BATCH_BYTES", 1_000)
    server = FakeServer()
    server.dies_at = dies_at
    with pytest.raises(IndexServerError):
        index_of(server)
    assert server.marker is None or not server.marker.complete
    before, server.dies_at = len(server.table), None
    server.written()
    assert_same(index_of(server), *items(N))
    assert dies_at < 4 or before > 0  # something had been written, and is not written again
    assert sorted(server.table) == sorted(CLIPS.tolist())


def test_data_lost_by_the_server_is_sent_again():
    server = FakeServer()
    index = index_of(server)
    server.drop()
    assert_same(index, *items(N))


def test_damaged_vectors_are_repaired_by_a_deep_check():
    server = FakeServer()
    index = index_of(server)
    clip = int(CLIPS[5])
    server.table[clip] = (*server.table[clip][:1], 0, *server.table[clip][2:3], -server.table[clip][3])
    assert index.synchronise().repaired == 0
    assert index.synchronise(deep=True).repaired == 1
    assert_same(index, *items(N))


def test_a_bias_travels_once_and_new_clips_only_add_theirs():
    server = FakeServer()
    vectors, available = items(N)
    asked, bias = queries(2), biases(N)
    old = bias[:100] - bias[:100].mean()  # biases are centred, so each add shifts all of them
    index_of(server, 100).search(*asked, 5, correction=Correction(old))
    server.written()
    index_of(server, 100).search(*asked, 5, correction=Correction(old.copy()))
    assert server.written() == 0
    index = index_of(server)
    assert server.written() == 20
    got = index.search(*asked, 5, correction=Correction(bias))
    assert server.written() == 20
    expected = ExactIndex(vectors, available).search(*asked, 5, correction=Correction(bias))
    assert got.rows.tolist() == expected.rows.tolist()


def test_more_normalisations_than_slots_replace_the_oldest():
    server = FakeServer()
    index, asked = index_of(server), queries(3)
    exact = ExactIndex(*items(N))
    for seed in (*range(10, 12 + SLOTS), 10):
        correction = Correction(biases(N, seed))
        got = index.search(*asked, 5, correction=correction)
        assert got.rows.tolist() == exact.search(*asked, 5, correction=correction).rows.tolist()


def test_a_slot_that_another_process_took_is_written_again():
    server = FakeServer()
    mine, asked, correction = index_of(server), queries(3), Correction(biases(N))
    mine.search(*asked, 5, correction=correction)
    other = index_of(server)
    for seed in range(20, 20 + SLOTS):  # replaces all slots
        other.search(*asked, 5, correction=Correction(biases(N, seed)))
    got = mine.search(*asked, 5, correction=correction)
    assert got.rows.tolist() == ExactIndex(*items(N)).search(*asked, 5, correction=correction).rows.tolist()


def test_a_killed_write_of_biases_is_finished(monkeypatch):
    monkeypatch.setattr(server_sync, "BATCH_BYTES", 1_000)
    server = FakeServer()
    index = index_of(server)
    server.dies_at = 6
    asked, correction = queries(3), Correction(biases(N))
    with pytest.raises(IndexServerError):
        index.search(*asked, 5, correction=correction)
    server.dies_at = None
    assert_same(index, *items(N))
    assert_same(index_of(server), *items(N))


def test_clips_of_a_newer_process_are_neither_returned_nor_deleted():
    server = FakeServer()
    old = index_of(server, first=60, count=N, in_library=CLIPS)
    index_of(server)
    old.synchronise()
    assert len(server.table) == N
    vectors, available = items(N)
    got = old.search(*queries(4), 10)
    assert got.rows.tolist() == ExactIndex(vectors[60:], available[60:]).search(*queries(4), 10).rows.tolist()


def test_an_empty_library():
    index = index_of(FakeServer(), 0)
    assert index.search(*queries(2), 3).rows.tolist() == [[-1] * 3] * 2


def test_ranges_hold_the_allowed_clips_and_no_others():
    random = np.random.default_rng(0)
    clips = random.permutation(200)[:90].astype(np.int64)
    allowed = random.random(90) < 0.4
    inside = [clip for clip in clips.tolist() if any(a <= clip <= b for a, b in id_ranges(clips, allowed))]
    assert sorted(inside) == sorted(clips[allowed].tolist())
