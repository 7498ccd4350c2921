"""Where the queries of a bank come from: captions, a query log, or the list that ships with wordreel.

The everyday queries are what people ask of a folder of videos, for when there is no other bank. Their phrases
are in `phrases/`: actions are paired with changing subjects and places, so that they become sentences as
varied as captions and as short as what is typed in a hurry. The list is the same every time.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import cycle
from pathlib import Path

from wordreel.errors import BankError

EVERYDAY = "everyday"
PLURAL = ("two men", "some children", "two women", "friends", "a group of people")
ANIMALS_EACH = 5
LONGEST = 2_000  # characters of one query; a longer line is no query
KEYS = ("query", "text", "q")  # what a logged query may be called


@dataclass(frozen=True)
class BankQueries:
    """Queries, and a few words on where they came from."""

    texts: tuple[str, ...]
    source: str


def builtin() -> BankQueries:
    """Return the list of everyday queries."""
    return BankQueries(tuple(everyday_queries()), f"wordreel's {EVERYDAY} queries")


def from_captions(captions: Mapping[str, Sequence[str]], name: str, split: str = "") -> BankQueries:
    """Return every caption of the videos `name` describes; `split` says which part of them it is."""
    texts = [text for group in captions.values() for text in group]
    return BankQueries(tuple(texts), f"the captions {name}" + (f" ({split})" if split else ""))


def from_log(path: str) -> BankQueries:
    """Read a query log: a query a line, or a JSON object a line with its `query`; `-` is standard input."""
    name = "standard input" if path == "-" else Path(path).name
    try:
        raw = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise BankError(f"the log {path} cannot be read: {error.strerror}") from error
    text = raw.decode("utf-8-sig", "replace")
    return BankQueries(tuple(_lines(text, name)), f"the log {name}")


def subsample(queries: BankQueries, limit: int | None) -> BankQueries:
    """Return at most `limit` of the queries, evenly spaced over the source.

    >>> subsample(BankQueries(("a", "b", "c", "d"), "x"), 2).texts
    ('a', 'd')
    """
    if limit is None or limit >= len(queries.texts):
        return queries
    step = (len(queries.texts) - 1) / max(limit - 1, 1)
    return BankQueries(tuple(queries.texts[round(number * step)] for number in range(limit)), queries.source)


def _lines(text: str, name: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        query = _logged(line, f"{name}, line {number}") if line.lstrip().startswith("{") else line
        if len(query) > LONGEST or "\0" in query:
            raise BankError(f"{name}, line {number} is not a query: it has {len(query)} characters")
        yield query


def _logged(line: str, where: str) -> str:
    try:
        entry = json.loads(line)
        return next(str(entry[key]) for key in KEYS if isinstance(entry.get(key), str))
    except (ValueError, AttributeError, StopIteration):
        raise BankError(f'{where} is no logged query; write {{"query": "a dog runs"}}') from None


def everyday_queries() -> list[str]:
    """Return the whole list: actions with two subjects and alone, animals, scenes, keywords and wishes.

    >>> texts = everyday_queries()
    >>> len(texts) > 900, "a busy crossing" in texts, len(texts) == len(set(texts))
    (True, True, True)
    """
    texts: list[str] = []
    person, setting, animal = cycle(_phrases("people")), cycle(_phrases("places")), cycle(_phrases("animals"))
    for action in _phrases("actions"):
        subject = next(person)
        texts += [
            f"{subject} {'are' if subject in PLURAL else 'is'} {action}",
            f"{next(person)} {action} {next(setting)}",
            action,
        ]
    for doing in _phrases("doings"):
        texts += [f"{next(animal)} {doing}" for _ in range(ANIMALS_EACH)]
    return list(dict.fromkeys([*texts, *_phrases("scenes"), *_phrases("things"), *_phrases("asked")]))


def _phrases(name: str) -> list[str]:
    return files("wordreel.banks").joinpath("phrases", f"{name}.txt").read_text(encoding="utf-8").splitlines()
