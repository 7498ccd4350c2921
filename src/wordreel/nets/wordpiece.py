"""WordPiece (Wu et al., 2016) as uncased BERT has it, for plain English in Python.

Reading a tokenizer takes tokenizers longer than a whole search. A query of letters, digits and common
punctuation needs only the vocabulary: lower case, words apart from punctuation, and of each word the longest
known pieces from its start. Anything else is the library's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

_PLAIN = re.compile(r"[A-Za-z0-9 .,;:!?'\"()&/+%$#-]*", re.ASCII)
_PARTS = re.compile(r"[a-z0-9]+|[^a-z0-9 ]", re.ASCII)
START, END, UNKNOWN, INSIDE = "[CLS]", "[SEP]", "[UNK]", "##"
LONGEST = 100  # characters of a word that has pieces


def plain_ids(text: str, vocabulary: Mapping[str, int]) -> list[int] | None:
    """Token ids with the start and the end; None where the text is not plain.

    >>> plain_ids("Un-do it", {"[CLS]": 1, "[SEP]": 2, "[UNK]": 3, "un": 4, "-": 5, "d": 6, "##o": 7})
    [1, 4, 5, 6, 7, 3, 2]
    """
    if not _PLAIN.fullmatch(text):
        return None
    ids = [vocabulary[START]]
    for part in _PARTS.findall(text.lower()):
        ids += _pieces(part, vocabulary)
    return [*ids, vocabulary[END]]


def _pieces(word: str, vocabulary: Mapping[str, int]) -> list[int]:
    pieces: list[int] = []
    start = 0
    while start < len(word) <= LONGEST:
        mark = INSIDE if start else ""
        ends = range(len(word), start, -1)
        end = next((end for end in ends if mark + word[start:end] in vocabulary), None)
        if end is None:
            break
        pieces.append(vocabulary[mark + word[start:end]])
        start = end
    return pieces if start == len(word) else [vocabulary[UNKNOWN]]


@cache
def read_vocabulary(path: Path) -> dict[str, int]:
    """Piece to id, from a `tokenizer.json`."""
    vocabulary: dict[str, int] = json.loads(path.read_bytes())["model"]["vocab"]
    return vocabulary
