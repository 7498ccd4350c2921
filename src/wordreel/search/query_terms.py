"""Filters that are written among the words of a query: `tag:beach`, `person:"Anna Lee"`, names of people,
quoted words and excluded ones (`query_words`).

A name that the owner gave to a person is a filter wherever it stands in the words, unless it is in quotes: a
search for Anna dancing looks for dancing in the moments that show Anna.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from wordreel.catalogue.annotations import compared
from wordreel.catalogue.people import check_on, find_person, known_names
from wordreel.catalogue.store import LibraryStore
from wordreel.errors import NextStep, QueryError
from wordreel.search.query import Query
from wordreel.search.query_words import split_words

TERM = re.compile(r'(?<!\S)(tag|person):(?:"([^"]*)"|(\S+))', re.IGNORECASE)
QUOTED = re.compile(r'("[^"]*")')
SOMEBODY = "a person"  # the words of a query that asks for nothing but people


def resolve_terms(store: LibraryStore, query: Query) -> Query:
    """The same query with its terms as filters, and its words without them.

    Raises:
        LibraryError: People are turned off, or nobody has the name.
        QueryError: The words say only what must not be there.
    """
    _check_people(store, query.filters.people)
    if query.text is None:
        return query
    names = known_names(store)
    tags, people, without = list(query.filters.tags), list(query.filters.people), list(query.without)
    texts: dict[str, str] = {}
    phrases = {"text": list(query.phrases), "then": list(query.then_phrases)}
    for name, text in (("text", query.text), ("then", query.then)):
        if text is None:
            continue
        rest, more_tags, more_people = split_terms(text, names)
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
    _check_people(store, people)
    filters = replace(query.filters, tags=_once(tags), people=_once(people))
    return replace(
        query,
        text=texts["text"],
        then=texts.get("then"),
        phrases=_once(phrases["text"]),
        then_phrases=_once(phrases["then"]),
        without=_once(without),
        filters=filters,
    )


def _once(values: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))


def _check_people(store: LibraryStore, names: Sequence[str]) -> None:
    if names:
        check_on(store)
    for name in names:
        find_person(store, name)


def split_terms(text: str, names: Sequence[str] = ()) -> tuple[str, list[str], list[str]]:
    """The words of a query without its terms, its tags and its people.

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
