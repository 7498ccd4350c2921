"""Dates among the words of a query: "2019", "summer 2019", "July 2020", "last summer", "yesterday".

A model cannot see in a picture when it was taken, so a date is a filter. Dates in quotes stay words, and so
do several dates in one query.
"""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import NamedTuple

FIRST_YEAR = 1990
SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}  # the first month of three
MONTHS = [
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
]
STARTS = SEASONS | {name: n for n, month in enumerate(MONTHS, start=1) for name in (month, month[:3])}
QUOTED = re.compile(r'("[^"]*")')
DATE = re.compile(
    r"(?<![\w.:-])(?:(?:in|from|of|during)\s+(?:the\s+)?)?"
    rf"(?P<words>(?:(?P<name>{'|'.join(STARTS)})(?:\s+of)?\s+)?(?P<year>\d{{4}})"
    rf"|last\s+(?P<last>week|month|year|{'|'.join(SEASONS)})|yesterday)(?![\w-]|\.\d)",
    re.IGNORECASE,
)


class DateWords(NamedTuple):
    """A query without its date, the words of the date, its first day, and the day after its last."""

    rest: str
    words: str
    first: date
    end: date

    @property
    def notice(self) -> str:
        """Say what the words were taken for, and how to search for them."""
        last = self.end - timedelta(days=1)
        days = f"on {last}" if last == self.first else f"from {self.first} to {last}"
        return f'only files recorded {days}; write "{self.words}" in quotes to search for the words'


def find_date(text: str, today: date) -> DateWords | None:
    """Return the one date among some words; None without one, or with several.

    >>> find_date("dogs in summer 2019", date(2024, 5, 6))[:3]
    ('dogs', 'summer 2019', datetime.date(2019, 6, 1))
    """
    unquoted = QUOTED.sub(lambda match: " " * len(match[0]), text)
    found = [(match, days) for match in DATE.finditer(unquoted) if (days := _days(match, today)) is not None]
    if len(found) != 1:
        return None
    match, (first, end) = found[0]
    rest = f"{text[: match.start()]} {text[match.end() :]}"
    return DateWords(" ".join(rest.split()), match["words"], first, end)


def _days(match: re.Match[str], today: date) -> tuple[date, date] | None:
    if match["year"]:
        year, name = int(match["year"]), (match["name"] or "").lower()
        if not FIRST_YEAR <= year <= today.year:
            return None
        return _months(year, STARTS.get(name, 1), 3 if name in SEASONS else 1 if name else 12)
    last = (match["last"] or "").lower()
    if last == "week":
        monday = today - timedelta(days=today.weekday())
        return monday - timedelta(days=7), monday
    if last == "month":
        return _months(today.year, today.month - 1, 1)
    if last == "year":
        return _months(today.year - 1, 1, 12)
    if last:
        first, end = _months(today.year, SEASONS[last], 3)
        return (first, end) if end <= today else _months(today.year - 1, SEASONS[last], 3)
    return today - timedelta(days=1), today


def _months(year: int, month: int, count: int) -> tuple[date, date]:
    """Return the first day of a month, 0 being the December before, and of the month so many later."""
    first, end = (divmod(12 * year + month - 1 + later, 12) for later in (0, count))
    return date(first[0], first[1] + 1, 1), date(end[0], end[1] + 1, 1)
