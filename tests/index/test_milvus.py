"""What is sent to Milvus, and what is made of its answers."""

from __future__ import annotations

import numpy as np

from wordreel.index import milvus
from wordreel.index.vector_server import SLOTS, GroupSearch, Layout, Marker, NewRows
from wordreel.util.server_address import parse_address

PATTERN = np.array([True, False, True])


class FakeClient:
    """Remembers what it was asked."""

    def __init__(self):
        self.asked, self.rows = [], []

    def has_collection(self, name):
        return True

    def has_partition(self, name, partition):
        return False

    def create_partition(self, name, partition):
        self.asked.append(("create", partition))

    def upsert(self, name, rows, partition_name=None):
        self.rows += rows

    def query(self, name, **more):
        return [{"marker": Marker("one").to_json()}]

    def search(self, name, **more):
        self.asked.append(more)
        return [[{"id": 3, "distance": 0.5}] for _ in more["data"]]


def server(mode="exact"):
    made = milvus.MilvusServer(parse_address(f"milvus://host?mode={mode}"), Layout("t", 3, 2))
    made._connected = FakeClient()
    return made


def test_absent_experts_are_zeros_and_biases_are_subtracted():
    biases = np.array([[0.5, np.nan, 0, 0]], np.float32)
    asked = server()
    asked.put(NewRows(PATTERN, np.array([4]), np.array([8]), biases, np.array([[1, 2, 3, 4]], np.float32)))
    (row,) = asked._connected.rows
    assert row["embedding"].tolist() == [1, 2, 0, 0, 3, 4, -0.5, 0, 0, 0]
    assert [row[f"known_{slot}"] for slot in range(SLOTS)] == [True, False, True, True]
    assert asked._connected.asked == [("create", "experts_5")]


def test_a_search_is_confined_to_the_partition_of_its_pattern():
    asked = server("hnsw")
    query = np.ones(4 + SLOTS, np.float32)
    (found,), marker = asked.search([GroupSearch(PATTERN, query, np.array([[1, 9]]), 1.0, 5)])
    (call,) = asked._connected.asked
    assert call["partition_names"] == ["experts_5"]
    assert call["filter"] == "(clip >= 1 and clip <= 9)"
    assert call["search_params"] == {"metric_type": "IP", "params": {"ef": milvus.EF_SEARCH}}
    assert found.tolist() == [3]
    assert marker.epoch == "one"


def test_a_long_filter_is_several_searches(monkeypatch):
    monkeypatch.setattr(milvus, "TERMS", 2)
    parts = milvus.expressions(np.array([[1, 2], [4, 5], [7, 7]]))
    assert parts == ["((clip >= 1 and clip <= 2) or (clip >= 4 and clip <= 5))", "clip in [7]"]


def test_expressions_are_not_nested_deeply():
    ranges = np.stack([np.arange(0, 4000, 2), np.arange(1, 4001, 2)], axis=1)
    depth = deepest = 0
    for letter in milvus.expressions(ranges)[0]:
        depth += (letter == "(") - (letter == ")")
        deepest = max(deepest, depth)
    assert deepest <= 14


def test_answers_to_several_filters_are_merged(monkeypatch):
    monkeypatch.setattr(milvus, "TERMS", 1)
    asked = server()
    answers = iter([[(5, 0.9), (1, 0.2)], [(4, 0.9)]])
    asked._connected.search = lambda *_, **more: [
        [{"id": clip, "distance": score} for clip, score in next(answers)]
    ]
    (found,), _ = asked.search(
        [GroupSearch(PATTERN, np.ones(4 + SLOTS, np.float32), np.array([[1, 1], [4, 5]]), 1.0, 2)]
    )
    assert found.tolist() == [4, 5]
