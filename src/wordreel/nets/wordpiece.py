"""WordPiece (Wu et al., 2016) as uncased BERT has it, for plain English in Python.

Reading a tokenizer takes tokenizers longer than a whole search. A query of letters, digits and common
punctuation needs only the vocabulary: lower case, words apart from punctuation, and of each word the longest
known pieces from its start. Anything else is the library's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

_PLAIN = re.compile(r"[A-Za-z0-9 .,;:!?'\"()&/+%$#-]*", re.ASCII)
_PARTS = re.compile(r"[a-z0-9]+|[^a-z0-9 ]", re.ASCII)
_NUMBER = re.compile(rb"\d+")
START, END, UNKNOWN, INSIDE = "[CLS]", "[SEP]", "[UNK]", "##"
FIRST_LOOKUPS = 256  # that take as long as reading the vocabulary
LONGEST = 100  # characters of a word that has pieces


def plain_ids(text: str, id_of: Callable[[str], int | None]) -> list[int] | None:
    """Token ids with the start and the end; None where the text is not plain, or the vocabulary unreadable.

    >>> ids = {"[CLS]": 1, "[SEP]": 2, "[UNK]": 3, "un": 4, "-": 5, "d": 6, "##o": 7}
    >>> plain_ids("Un-do it", ids.get)
    [1, 4, 5, 6, 7, 3, 2]
    """
    start, end, unknown = id_of(START), id_of(END), id_of(UNKNOWN)
    if start is None or end is None or unknown is None or not _PLAIN.fullmatch(text):
        return None
    ids = [start]
    for part in _PARTS.findall(text.lower()):
        ids += _pieces(part, id_of) or [unknown]
    return [*ids, end]


def _pieces(word: str, id_of: Callable[[str], int | None]) -> list[int]:
    """Empty where the word has a part that is not known."""
    pieces: list[int] = []
    start = 0
    while start < len(word) <= LONGEST:
        mark = INSIDE if start else ""
        ends = range(len(word), start, -1)
        found = ((end, known) for end in ends if (known := id_of(mark + word[start:end])) is not None)
        longest = next(found, None)
        if longest is None:
            return []
        start = longest[0]
        pieces.append(longest[1])
    return pieces


class VocabularyFile:
    """The vocabulary of a `tokenizer.json`, first looked up in the bytes of the file: a query has few pieces,
    and reading all thirty thousand takes longer than encoding it. Who looks up more has them read."""

    def __init__(self, path: Path) -> None:
        self._data = path.read_bytes()
        self._start = max(0, self._data.find(b'"vocab":'))
        self._lookups = 0
        self._ids: dict[str, int] | None = None

    def id_of(self, piece: str) -> int | None:
        """The id of a piece; None where it is not there, or the file is not written as compactly as usual."""
        if self._ids is not None:
            return self._ids.get(piece)
        self._lookups += 1
        if self._lookups > FIRST_LOOKUPS:
            self._ids = json.loads(self._data)["model"]["vocab"]
        key = json.dumps(piece).encode() + b":"
        at = self._data.find(key, self._start)
        while at > 0 and self._data[at - 1] not in b"{,":  # the end of a longer one
            at = self._data.find(key, at + 1)
        number = _NUMBER.match(self._data, at + len(key)) if at >= 0 else None
        return int(number[0]) if number else None


@cache
def read_vocabulary(path: Path) -> VocabularyFile:
    return VocabularyFile(path)
