"""A query refuses contradictions when it is built, and every front end spells the same filters."""

from dataclasses import FrozenInstanceError, fields, replace
from typing import get_type_hints

import numpy as np
import pytest
from tests.search.helpers import find
from typer.main import get_command

from wordreel.cli.app import app
from wordreel.errors import BankError, QueryError
from wordreel.index.base import Correction
from wordreel.search.filters import FilterArguments, Filters
from wordreel.search.query import Query, QueryArguments, VideoMoment, question_fields
from wordreel.search.scoring import PLAIN, FittedNorm, Scoring
from wordreel.search.searcher import Searcher


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({}, "text"),
        ({"text": "a", "image": "b.png"}, "text"),
        ({"like": "a.mp4", "image": "b.png"}, "text"),
        ({"like": "a.mp4", "then": "b"}, "then"),
        ({"text": "a", "then": "b", "moments": True}, "moments"),
        ({"text": " "}, "text"),
        ({"text": "a", "then": ""}, "then"),
        ({"text": "x" * 10_001}, "text"),
        ({"text": "a", "limit": 0}, "limit"),
        ({"text": "a", "offset": -1}, "offset"),
        ({"text": "a", "min_confidence": 1.5}, "min_confidence"),
        ({"like": "a.mp4", "min_confidence": 0.5}, "min_confidence"),
        ({"image": "a.png", "compare": True}, "compare"),
        ({"text": "a", "filters": Filters(), "kind": "video"}, "filters"),
    ],
)
def test_contradictions_name_their_field(arguments, field):
    with pytest.raises(QueryError) as caught:
        Query.build(arguments.pop("text", None), **arguments)
    assert caught.value.field == field


def test_norms_that_no_search_can_use():
    with pytest.raises(BankError, match="no normalisation 'better'"):
        Query("a", norm="better")
    with pytest.raises(BankError, match="second bank"):
        Query("a", norm="dual-is")


def test_a_query_is_immutable_and_comparable():
    query = Query.build("a dog", kind="video", limit=3)
    assert query == Query("a dog", filters=Filters(kind="video"), limit=3)
    assert hash(query) == hash(replace(query))
    with pytest.raises(FrozenInstanceError):
        query.limit = 4
    assert Query(like="a.mp4").video == VideoMoment("a.mp4")
    with pytest.raises(QueryError):
        VideoMoment()


def test_every_front_end_has_every_field():
    names = {one.name for one in question_fields()}
    assert {one.name for one in fields(Filters)} == set(FilterArguments.__annotations__)
    model = pytest.importorskip("wordreel.serve.schemas")
    assert set(model.SearchRequest.model_fields) == names
    options = {one.name for one in get_command(app).commands["search"].params}
    assert names - {"text"} <= options


def test_a_second_is_of_a_video():
    assert Query(like="a.mp4", second=3).video == VideoMoment("a.mp4", 3)
    with pytest.raises(QueryError, match="name a video"):
        Query("a", second=3)
    with pytest.raises(QueryError, match="β is more than 0"):
        Query("a", beta=0.0)


def test_arguments_are_the_fields_of_a_query():
    own = {one.name for one in fields(Query)} - {"text", "notices"}
    assert set(get_type_hints(QueryArguments)) == own | {one.name for one in fields(Filters)}


@pytest.fixture
def biased(searcher):
    """A searcher whose every norm but "none" is one fixed correction."""
    bias = np.linspace(0.5, 0, len(searcher)).astype(np.float32)
    calls = []

    def choose(searcher, norm, bank, beta, on_progress):
        calls.append((norm, bank, beta))
        return Scoring(PLAIN if norm in ("none", "auto") else FittedNorm(norm, Correction(bias)))

    return Searcher(searcher.snapshot, searcher.model, choose), calls


def test_a_comparison_holds_both_rankings(biased):
    searcher, _ = biased
    for then in (None, "blue"):
        results = searcher.search(Query("red", limit=100, then=then, compare=True))
        assert results.norm == "csls"  # where auto is plain
        assert results.hits == searcher.search(Query("red", limit=100, then=then, norm="csls")).hits
        assert results.plain == searcher.search(Query("red", limit=100, then=then, norm="none")).hits
        before = {hit.content: hit.rank for hit in results.plain}
        changes = [(hit.content, rank) for hit, rank in results.rank_changes()]
        assert changes == [(hit.content, before[hit.content]) for hit in results]
        assert any(hit.rank != rank for hit, rank in results.rank_changes())
    named = searcher.search(Query("red", norm="is", compare=True))
    assert named.norm == "is"


def test_scorings_are_chosen_once_until_the_banks_change(biased):
    searcher, calls = biased
    for _ in range(3):
        searcher.search(Query("red"))
        searcher.search(Query("red", norm="is", beta=3.0))
    assert calls == [("auto", None, None), ("is", None, 3.0)]
    renewed = searcher.with_new_banks()
    renewed.search(Query("red"))
    assert len(calls) == 3
    assert renewed.snapshot is searcher.snapshot


def test_many_queries_encode_once_and_equal_single_ones(searcher, model, monkeypatch):
    queries = [Query("red"), Query("blue dogs", then="red", limit=2), Query("red", moments=True, offset=1)]
    single = [searcher.search(query) for query in queries]
    calls = []
    encode = type(model).encode
    monkeypatch.setattr(type(model), "encode", lambda self, texts: calls.append(texts) or encode(self, texts))
    assert searcher.search_many(queries) == single
    assert calls == [["red", "blue dogs"]]


def test_results_are_a_sequence(searcher):
    results = searcher.search(Query("red", limit=3))
    assert [hit.rank for hit in results] == [1, 2, 3]
    assert (results[0], len(results), list(results[1:])) == (results.hits[0], 3, list(results.hits[1:]))
    assert results.total == 7
    assert not searcher.search(Query.build("red", kind="audio"))
    assert list(results[:2]) == find(searcher, "red", 2)


def test_offsets_skip_the_head(searcher, films):
    every = searcher.search(Query(like=films[0], limit=100))
    assert searcher.search(Query(like=films[0], limit=2, offset=1)).hits == every.hits[1:3]


def test_a_timeline_needs_words_and_a_video_of_the_library(searcher):
    content = searcher.snapshot.contents()[0]
    with pytest.raises(QueryError, match="one text"):
        searcher.where(content, Query("red", then="blue"))
    with pytest.raises(QueryError, match="not a video"):
        searcher.where("0" * 64, Query("red"))
    assert max(searcher.where(content, Query("red")).scores) <= 1
