"""Captions kept as pickled lists of words: `raw-captions.pkl` and its like, item id → captions → words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from wordreel.datasets.build import Captions, add, as_dict, as_list
from wordreel.datasets.files import read_pickle
from wordreel.datasets.text import read_json
from wordreel.errors import DatasetError


def read_tokens(path: Path) -> Captions:
    """Item id → captions, from a pickle (or the same as JSON) of sentences or lists of words."""
    captions: Captions = {}
    for name, sentences in as_dict(load(path), path, "the captions").items():
        where = f"{path}, {name!r}"
        captions.setdefault(str(name), [])
        for sentence in as_list(sentences, where, "its captions"):
            add(captions, str(name), joined(sentence, where), where)
    return captions


def load(path: Path) -> Any:
    """What a pickle or a JSON file holds."""
    return read_json(path) if path.suffix == ".json" else read_pickle(path)


def joined(sentence: object, where: str) -> str:
    """A sentence from its words.

    >>> joined(["a", "man", "sings"], "here")
    'a man sings'
    """
    words = [sentence] if isinstance(sentence, str | bytes) else as_list(sentence, where, "a caption")
    if not all(isinstance(word, str | bytes) for word in words):
        raise DatasetError(f"{where}: a caption must be text or a list of words")
    return " ".join(_word(word) for word in words)


def _word(word: str | bytes) -> str:
    # Pickles of Python 2 are read byte by letter; words of theirs that are UTF-8 are read again.
    raw = word.encode("latin-1", "ignore") if isinstance(word, str) else word
    if isinstance(word, str) and (word.isascii() or len(raw) != len(word)):
        return word
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1")
