"""Collections to be judged by what was learned on the others: their captions, and banks of several domains.

Shared by `beta.py` and `confidence.py`. Each collection is a gallery of its own, asked for by some
captions of every video. Banks are the everyday queries and captions of training videos of every collection
that has some, so that a collection meets banks of its own and of other domains.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from common import LIBRARIES, Told, captions_of, progress, texts_of
from engines import Encoded, View, searcher_of

from wordreel.banks.caption_queries import caption_queries
from wordreel.banks.sources import BankQueries, everyday_queries, subsample
from wordreel.index.exact import ExactIndex
from wordreel.models.base import Model
from wordreel.search.searcher import Searcher
from wordreel.search.segments import segment_argmax
from wordreel.types import Float32, Int64

CAPTIONS = 3  # of each video that ask
BANK = 2_000  # captions of a bank
BATCH = 1_024
EVERYDAY = "everyday"


@dataclass(frozen=True)
class Collection:
    """The videos of one split of a library."""

    name: str
    title: str
    library: str
    split: str


COLLECTIONS = (
    Collection("msvd-test", "MSVD test", "msvd", "test"),
    Collection("flickr8k-dev", "Flickr8k dev", "flickr8k", "dev"),
    Collection("coco-test", "COCO, 1,000 pictures held out", "coco", "test"),
    Collection("msrvtt-240", "240 MSR-VTT videos", "msrvtt", "all"),
)
TITLES = {one.name: one.title for one in COLLECTIONS}


@dataclass(frozen=True, eq=False)
class Gallery:
    """The items of a collection's videos, video by video."""

    collection: Collection
    model: Model
    index: ExactIndex
    starts: Int64  # where each video's items begin
    texts: tuple[str, ...]
    right: Int64  # [texts], the video of each

    @property
    def videos(self) -> int:
        return len(self.starts)

    def items(self, texts: Sequence[str]) -> Float32:
        """Plain similarities `[texts, items]`, without a bonus for words that are spoken or on the screen."""
        blocks = []
        for start in range(0, len(texts), BATCH):
            queries = self.model.encode([text.strip() for text in texts[start : start + BATCH]])
            vectors = np.stack([query.vectors for query in queries])
            weights = np.stack([query.weights for query in queries])
            blocks.append(self.index.scores(vectors, weights, slice(None)))
        return np.concatenate(blocks)

    def best(self, items: Float32) -> tuple[Float32, Int64]:
        """`[texts, videos]`: the score of each video's best item, and which item that is."""
        scores, at = segment_argmax(items, self.starts)
        return np.asarray(scores, np.float32), np.asarray(at, np.int64)


def some_captions(told: Mapping[str, list[str]], count: int = CAPTIONS) -> Told:
    """At most `count` captions of each video, evenly spaced."""
    return {name: list(subsample(BankQueries(tuple(said), name), count).texts) for name, said in told.items()}


def bank_texts(told: Mapping[str, Mapping[str, Told]]) -> dict[str, list[str]]:
    """The everyday queries, and training captions of each collection that has some."""
    banks = {EVERYDAY: everyday_queries()}
    for library, splits in told.items():
        if "train" in splits:
            some = subsample(BankQueries(tuple(texts_of(splits["train"])), library), BANK).texts
            banks[library] = list(dict.fromkeys(text.strip() for text in some))
    return banks


def told_of(data: Path) -> dict[str, dict[str, Told]]:
    """Library → split → id → captions of all collections."""
    return {name: captions_of(data, name) for name in LIBRARIES}


def gallery_of(collection: Collection, searcher: Searcher, told: Mapping[str, Told]) -> Gallery:
    """The videos of a collection that the library has, with some captions of each."""
    found = caption_queries(searcher, some_captions(told[collection.split]))
    rows = [np.asarray(searcher.snapshot.rows(content), np.int64) for content in found.contents]
    at, starts = np.concatenate(rows), np.cumsum([0, *map(len, rows[:-1])])
    known = searcher.snapshot.gallery
    index = ExactIndex(np.asarray(known.vectors[at]), np.asarray(known.available[at]))
    return Gallery(collection, searcher.model, index, starts, tuple(found.texts), np.asarray(found.right))


def galleries(model: Encoded, libraries: Mapping[str, Path], cache: Path, told: Any) -> Iterator[Gallery]:
    """Every collection whose library is given, embedded by a model."""
    for collection in COLLECTIONS:
        if collection.library in libraries:
            progress(f"{model.fingerprint}: {collection.title}")
            searcher = searcher_of(View(libraries[collection.library], cache), model)
            yield gallery_of(collection, searcher, told[collection.library])
