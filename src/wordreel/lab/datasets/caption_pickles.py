"""Captions stored as pickled lists of words, such as `raw-captions.pkl`: item id → captions → words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from wordreel.errors import DatasetError
from wordreel.lab.datasets.annotation_files import read_pickle
from wordreel.lab.datasets.json_fields import require_dict, require_list
from wordreel.lab.datasets.split_builder import CaptionsById, add_caption
from wordreel.util.text_files import read_json


def read_caption_pickle(path: Path) -> CaptionsById:
    """Item id → captions, from a pickle or JSON file of sentences or lists of words."""
    captions: CaptionsById = {}
    for name, sentences in require_dict(load_captions(path), path, "the captions").items():
        where = f"{path}, {name!r}"
        captions.setdefault(str(name), [])
        for sentence in require_list(sentences, where, "its captions"):
            add_caption(captions, str(name), join_words(sentence, where), where)
    return captions


def load_captions(path: Path) -> Any:
    """Load a pickle or a JSON file."""
    return read_json(path) if path.suffix == ".json" else read_pickle(path)


def join_words(sentence: object, where: str) -> str:
    """Join the words of a caption to a sentence.

    >>> join_words(["a", "man", "sings"], "here")
    'a man sings'
    """
    words = [sentence] if isinstance(sentence, str | bytes) else require_list(sentence, where, "a caption")
    if not all(isinstance(word, str | bytes) for word in words):
        raise DatasetError(f"{where}: a caption must be text or a list of words")
    return " ".join(_word(word) for word in words)


def _word(word: str | bytes) -> str:
    # Python 2 pickles are read as latin1; words that were UTF-8 are decoded again.
    raw = word.encode("latin-1", "ignore") if isinstance(word, str) else word
    if isinstance(word, str) and (word.isascii() or len(raw) != len(word)):
        return word
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1")
