"""Where the queries of a bank come from: captions, a query log, or the list that ships with wordreel."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from wordreel.banks import everyday
from wordreel.errors import BankError

LONGEST = 2_000  # characters of one query; a longer line is no query
KEYS = ("query", "text", "q")  # what a logged query may be called


@dataclass(frozen=True)
class BankQueries:
    """Queries, and a few words on where they came from."""

    texts: tuple[str, ...]
    source: str


def builtin() -> BankQueries:
    """Return the list of everyday queries."""
    return BankQueries(tuple(everyday.queries()), f"wordreel's {everyday.NAME} queries")


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
    """At most `limit` of the queries, evenly spaced over the source.

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
