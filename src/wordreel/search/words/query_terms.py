"""What is written among the words of a query.

Terms (`tag:beach`, `person:"Anna Lee"`), names of people, dates (`summer 2019`), phrases in quotes
(`"to Vienna"`) and exclusions (`-race`, `without a car`, `not a dog`).

A name that the owner gave to a person is a filter wherever it stands in the words, unless it is in quotes: a
search for Anna dancing looks for dancing in the moments that show Anna.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime, time
from typing import NamedTuple

from wordreel.catalogue.annotations import compared
from wordreel.catalogue.files import passing_contents
from wordreel.catalogue.store import LibraryStore
from wordreel.errors import NextStep, QueryError
from wordreel.people.people_manager import PeopleManager
from wordreel.search.filters import Filters
from wordreel.search.query import Query
from wordreel.search.words.date_words import QUOTED, find_date
from wordreel.search.words.lexical import STOP_WORDS

TERM = re.compile(r'(?<!\S)(tag|person):(?:"([^"]*)"|(\S+))', re.IGNORECASE)
SOMEBODY = "a person"  # the words of a query that asks for nothing but people
PHRASE = re.compile(r'(?<!\S)(-?)"([^"]*)"')
MINUS = re.compile(r"(?<!\S)-([^\W\d_][\w-]*)")
WITHOUT = re.compile(
    r"\b(?:with(?:out| no)(?:\s+(?:a|an|the|any))?|not\s+(?:a|an|the|any))\s+([^\W\d_][\w-]*(?:\s+[\w-]+)*)",
    re.IGNORECASE,
)
JOINS = {"and", "or"}  # between words that are excluded together


def resolve_terms(store: LibraryStore, query: Query) -> Query:
    """Return the query with its terms as filters, and its words without them.

    Raises:
        LibraryError: People are turned off, or nobody has the name.
        QueryError: The words say only what must not be there.
    """
    people_of_library = PeopleManager(store)
    if query.text is None:
        _check_people(people_of_library, query.filters.people)
        return query
    names = people_of_library.names()
    tags, people, without = list(query.filters.tags), list(query.filters.people), list(query.without)
    texts: dict[str, str] = {}
    phrases = {"text": list(query.phrases), "then": list(query.then_phrases)}
    dates, notices = query.filters, query.notices
    for name, text in (("text", query.text), ("then", query.then)):
        if text is None:
            continue
        rest, more_tags, more_people = split_terms(text, names)
        if name == "text":
            rest, dates, notices = _take_date(store, rest, query.filters)
        words = split_words(rest)
        tags += more_tags
        people += more_people
        phrases[name] += words.phrases
        without += words.without
        texts[name] = words.text or " ".join(more_tags) or (SOMEBODY if more_people else "")
        if not texts[name] and words.without:
            step = NextStep("say also what to look for, such as `animals -dog`")
            raise QueryError("the query says only what must not be there", step, field=name)
        texts[name] = texts[name] or text
    _check_people(people_of_library, people)
    filters = replace(dates, tags=_once(tags), people=_once(people))
    return replace(
        query,
        text=texts["text"],
        then=texts.get("then"),
        phrases=_once(phrases["text"]),
        then_phrases=_once(phrases["then"]),
        without=_once(without),
        filters=filters,
        notices=notices,
    )


def _take_date(store: LibraryStore, text: str, filters: Filters) -> tuple[str, Filters, tuple[str, ...]]:
    """Return the words without their date, the filters with it, and a notice of that.

    The words stay as they are with dates in the filters, or if nothing in the library is of that date.
    """
    found = None if filters.after or filters.before else find_date(text, date.today())
    if found is None:
        return text, filters, ()
    after, before = (datetime.combine(day, time.min) for day in (found.first, found.end))
    if not passing_contents(store.catalogue, Filters(after=after, before=before).conditions):
        return text, filters, ()
    return found.rest, replace(filters, after=after, before=before), (found.notice,)


def _once(values: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))


def _check_people(known: PeopleManager, names: Sequence[str]) -> None:
    if names:
        known.check_on()
    for name in names:
        known.find(name)


def split_terms(text: str, names: Sequence[str] = ()) -> tuple[str, list[str], list[str]]:
    """Return the words of a query without its terms, its tags and its people.

    >>> split_terms('dogs tag:beach person:"Anna Lee" run')
    ('dogs run', ['beach'], ['Anna Lee'])
    >>> split_terms('anna dances with "anna"', ["Anna"])
    ('dances with "anna"', [], ['Anna'])
    """
    tags: list[str] = []
    people: list[str] = []

    def take(match: re.Match[str]) -> str:
        value = match[2] if match[2] is not None else match[3]
        if not compared(value):
            return match[0]
        (tags if match[1].lower() == "tag" else people).append(value)
        return " "

    rest = TERM.sub(take, text)
    for name in sorted(names, key=len, reverse=True):
        pattern = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)", re.IGNORECASE)
        parts = QUOTED.split(rest)
        found = [pattern.subn(" ", part) if not part.startswith('"') else (part, 0) for part in parts]
        if any(count for _, count in found):
            people.append(name)
            rest = "".join(part for part, _ in found)
    return " ".join(rest.split()), tags, people


class QueryWords(NamedTuple):
    """The words that a model encodes, those that must be said or shown, and those that must not be there."""

    text: str
    phrases: tuple[str, ...] = ()
    without: tuple[str, ...] = ()


def split_words(text: str) -> QueryWords:
    """Split the words of a query; an exclusion ends at the next stop word or mark.

    >>> split_words('a street without a car or bus in the rain -night')
    QueryWords(text='a street in the rain', phrases=(), without=('night', 'car', 'bus'))
    >>> split_words('a train "to Vienna" -"slow train"')
    QueryWords(text='a train to Vienna', phrases=('to Vienna',), without=('slow train',))
    """
    phrases: list[str] = []
    without: list[str] = []

    def quoted(match: re.Match[str]) -> str:
        words = " ".join(match[2].split())
        if not any(char.isalnum() for char in words):
            return " "
        (without if match[1] else phrases).append(words)
        return " " if match[1] else f" \0{len(phrases) - 1}\0 "  # kept from the other patterns

    def minus(match: re.Match[str]) -> str:
        without.append(match[1])
        return " "

    def negated(match: re.Match[str]) -> str:
        words = match[1].split()
        group: list[str] = []
        for used, word in enumerate(words):
            lower = word.lower()
            if lower in JOINS and group:
                without.append(" ".join(group))
                group = []
            elif lower in STOP_WORDS and not (lower in ("a", "an", "the") and not group):
                words = words[used:]
                break
            elif lower not in STOP_WORDS:
                group.append(word)
        else:
            words = []
        if group:
            without.append(" ".join(group))
        return " ".join(["", *words, ""])

    rest = WITHOUT.sub(negated, MINUS.sub(minus, PHRASE.sub(quoted, text)))
    rest = re.sub("\0(\\d+)\0", lambda match: phrases[int(match[1])], rest)
    return QueryWords(" ".join(rest.split()), tuple(phrases), tuple(dict.fromkeys(without)))
