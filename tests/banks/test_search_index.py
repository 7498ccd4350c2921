"""The index of a large library: built with its embeddings, stated, and searched as the exact scan is."""

import numpy as np
import pytest
from tests.index.test_cached import Builder
from tests.search.helpers import find

from wordreel.banks.search_index import build_index, index_is_stale, text_sample
from wordreel.catalogue.banks import create_bank
from wordreel.embed.embed_library import embed_library
from wordreel.index import cached
from wordreel.search.searcher import Searcher

BUILDER = Builder()  # the module is named as a back end below


@pytest.fixture
def large(monkeypatch):
    """Every library is large enough for an index with files."""
    monkeypatch.setattr(cached, "EXACT_BYTES", 0)
    monkeypatch.setattr(cached, "LARGER", ((float("inf"), __name__),))


def test_a_small_library_has_no_index_files(store, model):
    embed_library(store, model)
    assert build_index(store, model) is None
    assert not index_is_stale(store, model)
    assert str(Searcher.open(store, model).snapshot.opened_index).startswith("exact scan of ")


def test_a_large_library_is_searched_with_its_index(store, model, films, large):
    embed_library(store, model)
    create_bank(store, "bank", ["red", "green and blue", "blue"], "test")
    assert index_is_stale(store, model)
    assert Searcher.open(store, model).snapshot.index.name == "exact", "until it is built"
    built = build_index(store, model)
    assert build_index(store, model) is None, "nothing to do"
    assert set(built.recall) == {"text", "look-alike"}
    assert built.recall["text"].queries == 3
    searcher = Searcher.open(store, model)
    assert searcher.snapshot.index.name == "rough"
    assert "look-alike: recall@10" in str(searcher.snapshot.opened_index)
    # The test's index never returns row 0: everything else is as the exact scan has it.
    hits = find(searcher, "red", 50, moments=True)
    first = searcher.snapshot.items[0]
    assert hits
    assert all((hit.content, hit.start, hit.end) != (first.content, first.start, first.end) for hit in hits)
    store.remove(films[:1])
    left = Searcher.open(store, model)
    assert left.snapshot.index.name == "rough"
    assert str(films[0]) not in {str(hit.path) for hit in find(left, "red", 50)}


def test_without_a_bank_everyday_queries_stand_for_those_to_come(store, model):
    sample = text_sample(store, model)
    assert 50 < len(sample.vectors) == len(sample.weights)
    assert np.isfinite(sample.vectors).all()
