"""Dates among the words of a query become a filter, which a notice names and quotes turn off."""

from datetime import date, datetime

import pytest

from wordreel.search.query import Query
from wordreel.search.words.date_words import find_date
from wordreel.search.words.query_terms import resolve_terms

FRIDAY = date(2026, 11, 20)


@pytest.mark.parametrize(
    ("text", "rest", "first", "last"),
    [
        ("dogs 2019", "dogs", "2019-01-01", "2019-12-31"),
        ("dogs in the summer of 2019", "dogs", "2019-06-01", "2019-08-31"),
        ("Winter 2019 snow", "snow", "2019-12-01", "2020-02-29"),
        ("a party in July 2020 outside", "a party outside", "2020-07-01", "2020-07-31"),
        ("dec 2020", "", "2020-12-01", "2020-12-31"),
        ("beach last summer", "beach", "2026-06-01", "2026-08-31"),
        ("beach last autumn", "beach", "2025-09-01", "2025-11-30"),  # this one is not over
        ("snow last winter", "snow", "2025-12-01", "2026-02-28"),
        ("from last year", "", "2025-01-01", "2025-12-31"),
        ("last month", "", "2026-10-01", "2026-10-31"),
        ("last week", "", "2026-11-09", "2026-11-15"),
        ("yesterday", "", "2026-11-19", "2026-11-19"),
        ('2019 "in 2018"', '"in 2018"', "2019-01-01", "2019-12-31"),
    ],
)
def test_dates_that_are_found(text, rest, first, last):
    found = find_date(text, FRIDAY)
    assert found is not None
    assert (found.rest, str(found.first)) == (rest, first)
    assert last in found.notice


def test_the_month_before_january():
    assert find_date("last month", date(2026, 1, 5))[2:] == (date(2025, 12, 1), date(2026, 1, 1))


@pytest.mark.parametrize(
    "text",
    [
        'a "summer 2019" poster',
        "2018 or 2019",
        "-2019",
        "1918",
        "2031",
        "room 20190",
        "a summer day",
        "v2019",
        "2019.5",
    ],
)
def test_words_that_stay_words(text):
    assert find_date(text, FRIDAY) is None


def test_a_date_is_a_filter_where_the_library_has_that_date(searcher, films):
    store = searcher.store
    with store.writing():
        store.catalogue.run("UPDATE files SET captured = '2001-01-01'")
        dated = store.files()[0]
        store.catalogue.run("UPDATE files SET captured = '2019-07-14' WHERE content = ?", dated.content)
    found = searcher.search(resolve_terms(store, Query("red summer 2019")))
    assert {hit.content for hit in found} == {dated.content}
    assert found.notices[0] == (
        "only files recorded from 2019-06-01 to 2019-08-31; "
        'write "summer 2019" in quotes to search for the words'
    )
    assert found.notices[1:] == searcher.search(Query("red")).notices
    for text in ("red 2018", 'red "summer 2019"'):  # no file is of 2018
        query = resolve_terms(store, Query(text))
        assert (query.filters.after, query.notices) == (None, ())
    assert resolve_terms(store, Query.build("red 2019", after=datetime(2000, 1, 1))).text == "red 2019"
