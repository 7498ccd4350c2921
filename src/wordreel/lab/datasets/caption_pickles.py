"""Captions stored as pickled words, such as `raw-captions.pkl`: item id → captions, each a list of words."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from wordreel.errors import DatasetError, NextStep
from wordreel.lab.datasets.array_files import as_id, read_numpy
from wordreel.lab.datasets.split_builder import require_dict, require_list
from wordreel.util.text_files import read_json

REFUSED_STEP = NextStep("get the captions again as JSON or plain lists, from a source you trust")
MAX_PARTS = 100_000  # captions of an item, or words of a caption: transcripts are long


def read_caption_mapping(path: Path) -> dict[str, list[Any]]:
    """Return the list of each item id, from a pickle or a JSON file."""
    content = read_json(path) if path.suffix == ".json" else read_numpy(path, REFUSED_STEP)
    return {
        as_id(name): require_list(value, f"{path}, {name!r}", "its captions")
        for name, value in require_dict(content, path, "the captions").items()
    }


def join_captions(captions: Iterable[object], where: str) -> list[str]:
    """Return the captions of an item, each text or a list of words, as sentences.

    >>> join_captions([["a", "man", "sings"], "he bows"], "here")
    ['a man sings', 'he bows']
    """
    sentences, budget = [], 10 * MAX_PARTS
    for caption in captions:
        words = [caption] if isinstance(caption, str | bytes) else _limited(caption, where)
        budget -= len(words)  # checked in the loop: a small pickle can repeat one long list many times
        if budget < 0:
            raise DatasetError(f"{where}: more words than the captions of one item have")
        if not all(isinstance(word, str | bytes) for word in words):
            raise DatasetError(f"{where}: a caption must be text or a list of words")
        sentences.append(" ".join(map(_word, words)))
    return sentences


def parse_captions(value: Any, where: str = "captions") -> list[str]:
    """Return the captions of an item: a list of word lists, of sentences or of words, or one sentence.

    >>> parse_captions([["a", "man"], ["he", "sings"]]), parse_captions(["a", "man"]), parse_captions("a man")
    (['a man', 'he sings'], ['a man'], ['a man'])
    """
    parts = [value] if isinstance(value, str | bytes) else _limited(value, where)
    sentences = join_captions(parts, where)
    one_list_of_words = all(isinstance(part, str | bytes) for part in parts) and not any(
        " " in sentence.strip() for sentence in sentences
    )
    return [" ".join(sentences)] if one_list_of_words and parts else sentences


def _limited(value: Any, where: str) -> list[Any]:
    parts = require_list(value.tolist() if isinstance(value, np.ndarray) else value, where, "captions")
    if len(parts) > MAX_PARTS:
        raise DatasetError(f"{where}: {len(parts)} captions or words for one item; the limit is {MAX_PARTS}")
    return parts


def _word(word: str | bytes) -> str:
    # Python 2 pickles are read as latin1; words that were UTF-8 are decoded again.
    raw = word.encode("latin-1", "ignore") if isinstance(word, str) else word
    if isinstance(word, str) and (word.isascii() or len(raw) != len(word)):
        return word
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1")
