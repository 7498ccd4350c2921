"""Queries in one line, with a scoring that a test makes itself."""

from wordreel.search.filters import Filters
from wordreel.search.like import find_look_alikes
from wordreel.search.query import Query
from wordreel.search.scoring import PLAIN, Scoring


def find(searcher, text, limit=10, filters=None, norm=PLAIN, confidence=None, **fields):
    """The hits of a text query."""
    query = Query(text, limit=limit, filters=filters or Filters(), **fields)
    return list(searcher.search(query, Scoring(norm, confidence)))


def like(searcher, video, limit=10, filters=None):
    """The look-alikes of an encoded video."""
    query = Query(like="any", limit=limit, filters=filters or Filters())
    return list(find_look_alikes(searcher, video, query))
