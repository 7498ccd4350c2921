"""Example queries against a slow twin: every query searched for, one by one."""

import pytest

from wordreel.banks.choose_scoring import choose_scoring
from wordreel.banks.embedded_bank import EmbeddedBank
from wordreel.banks.examples import LEAST, example_queries
from wordreel.catalogue.banks import create_bank
from wordreel.embed.embed_library import embed_library
from wordreel.search.query import Query
from wordreel.search.searcher import Searcher

COLOURS = ("red", "green", "blue", "red and green", "green and blue", "blue and red", "anything")


@pytest.fixture
def searcher(store, model):
    embed_library(store, model)
    return Searcher.open(store, model, choose_scoring)


def test_examples_are_the_surest_queries_of_different_videos(store, searcher):
    texts = [f"{colour} {chr(97 + number) * 9}" for number in range(20) for colour in COLOURS]
    embedded = EmbeddedBank.open(searcher, create_bank(store, "colours", texts, "test"))
    found = [(searcher.search(Query(text, limit=1))[0], text) for text in texts]
    expected, videos = [], set()
    for hit, text in sorted(found, key=lambda one: -one[0].confidence):
        if hit.content not in videos and hit.confidence >= LEAST and len(expected) < 3:
            expected.append(text)
            videos.add(hit.content)
    assert example_queries(embedded, 3) == expected


def test_few_queries_cannot_tell(store, searcher):
    assert example_queries(EmbeddedBank.open(searcher, create_bank(store, "few", ["red"], "test"))) == []
