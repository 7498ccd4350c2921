"""Captions of a library's videos as queries with known answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from wordreel.errors import QueryError
from wordreel.search.searcher import Searcher
from wordreel.types import Int64


@dataclass(frozen=True, eq=False)
class Answers:
    """`texts [queries]`, each asking for video `right[query]` of the gallery. Captions of one video are
    neighbours; other videos of the library do not compete."""

    texts: tuple[str, ...]
    right: Int64  # [queries]
    names: tuple[str, ...]  # [videos], as the captions name them
    contents: tuple[str, ...]  # [videos], hash of each video's bytes
    columns: Int64  # [videos], where `Searcher.scores` has them
    missing: int  # captioned videos that the library does not have


def answers(searcher: Searcher, captions: Mapping[str, Sequence[str]]) -> Answers:
    """Match captions to videos. An id is a file's name, with or without its ending; files of the same bytes
    are one video, which all their captions ask for."""
    named: dict[str, str] = {}
    for file in searcher.store.files():
        named.setdefault(Path(file.path).name, file.content)
        named.setdefault(Path(file.path).stem, file.content)
    column = {content: number for number, content in enumerate(searcher.snapshot.contents())}
    groups: dict[str, list[str]] = {}
    names: dict[str, str] = {}
    here = 0
    for name, texts in captions.items():
        content = named.get(name)
        if content in column:
            here += 1
            groups.setdefault(content, []).extend(texts)
            names.setdefault(content, name)
    asked = [text for group in groups.values() for text in group]
    if not asked:
        raise QueryError(
            "none of the captioned ids is a file name in this library; `wordreel list` shows them"
        )
    return Answers(
        texts=tuple(asked),
        right=np.repeat(np.arange(len(groups)), [len(group) for group in groups.values()]),
        names=tuple(names.values()),
        contents=tuple(groups),
        columns=np.array([column[content] for content in groups], np.int64),
        missing=len(captions) - here,
    )
