"""Captions of a library's videos as queries with known answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from wordreel.catalogue.captions import NamedContents
from wordreel.errors import NextStep, QueryError
from wordreel.search.searcher import Searcher
from wordreel.types import Int64


@dataclass(frozen=True, eq=False)
class CaptionQueries:
    """Hold `texts [queries]`, each asking for video `right[query]` of the gallery.

    Captions of one video are neighbours; other videos of the library do not compete.
    """

    texts: tuple[str, ...]
    right: Int64  # [queries]
    names: tuple[str, ...]  # [videos], as the captions name them
    contents: tuple[str, ...]  # [videos], hash of each video's bytes
    columns: Int64  # [videos], where `Searcher.scores` has them
    missing: int  # captioned videos that the library does not have


def caption_queries(searcher: Searcher, captions: Mapping[str, Sequence[str]]) -> CaptionQueries:
    """Match captions to videos by `NamedContents`.

    Files of the same bytes are one video, which all their captions ask for.
    """
    named = NamedContents.of(searcher.store.files())
    column = {content: number for number, content in enumerate(searcher.snapshot.contents())}
    groups: dict[str, list[str]] = {}
    names: dict[str, str] = {}
    matched = 0
    for name, texts in captions.items():
        content = named.find(name)
        if content is not None and content in column:
            matched += 1
            groups.setdefault(content, []).extend(texts)
            names.setdefault(content, name)
    queries = [text for group in groups.values() for text in group]
    if not queries:
        raise QueryError(
            "none of the captioned ids is a file name in this library", NextStep("show its files", "list")
        )
    return CaptionQueries(
        texts=tuple(queries),
        right=np.repeat(np.arange(len(groups)), [len(group) for group in groups.values()]),
        names=tuple(names.values()),
        contents=tuple(groups),
        columns=np.array([column[content] for content in groups], np.int64),
        missing=len(captions) - matched,
    )
