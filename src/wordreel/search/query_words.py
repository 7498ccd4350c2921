"""Quoted and excluded words of a query: `"to Vienna"`, `-race`, `without a car`, `not a dog`."""

from __future__ import annotations

import re
from typing import NamedTuple

from wordreel.search.lexical import STOP_WORDS

QUOTED = re.compile(r'(?<!\S)(-?)"([^"]*)"')
MINUS = re.compile(r"(?<!\S)-([^\W\d_][\w-]*)")
WITHOUT = re.compile(
    r"\b(?:with(?:out| no)(?:\s+(?:a|an|the|any))?|not\s+(?:a|an|the|any))\s+([^\W\d_][\w-]*(?:\s+[\w-]+)*)",
    re.IGNORECASE,
)
JOINS = {"and", "or"}  # between words that are excluded together


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

    rest = WITHOUT.sub(negated, MINUS.sub(minus, QUOTED.sub(quoted, text)))
    rest = re.sub("\0(\\d+)\0", lambda match: phrases[int(match[1])], rest)
    return QueryWords(" ".join(rest.split()), tuple(phrases), tuple(dict.fromkeys(without)))
