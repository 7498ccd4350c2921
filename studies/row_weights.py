"""How much should each row of the default model count? Chosen on videos that a checkpoint never saw.

    python studies/row_weights.py --data DATA --msvd msvd.lib --flickr8k flickr8k.lib --msrvtt msrvtt.lib \\
        --coco coco.lib --weights "without MSVD=a" --weights "without COCO=b"

Each checkpoint "without" a collection answers captions of that collection: of MSVD's validation videos, of
400 training videos or pictures, of the MSR-VTT videos. Nothing is trained on MSR-VTT, so that the shipped
files may be given as "without MSR-VTT".
Beside the pictures' row, which counts 1, the other rows go over a grid one after the other, to the least
mean log rank, averaged over the collections. The last line of each table is the honest one: weights chosen
on the other collections alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from common import LIBRARIES, Facts, Told, captions_of, parse_weights, parser, progress
from engines import Encoded, View, contents_of, searcher_of

from wordreel.lab.reports.tables import markdown
from wordreel.models.base import Model
from wordreel.models.joint.model import ROW, WEIGHTS
from wordreel.models.similarity import divide
from wordreel.retrieval.metrics import RetrievalMetrics, retrieval_metrics
from wordreel.retrieval.ranks import ranks_of
from wordreel.runtime.store import WeightStore
from wordreel.search.searcher import Searcher
from wordreel.search.words.lexical import lexical_matches
from wordreel.types import Bool, Float32, Float64, Int64

GRID = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5)
PASSES = 2  # over the rows
BATCH = 512  # texts
CAPTIONS = 5  # of a video
TRAINING = 400  # training videos or pictures that choose: validation videos are few
Chosen = dict[str, float]


@dataclass(frozen=True, eq=False)
class RowScores:
    """Similarities of texts and items, row by row, and what a search adds for words said and shown.

    `rows [experts, texts, items]`, `available [items, experts]`, `bonus [texts, items]`; items stand video by
    video, and `edges [videos]` is where each video begins.
    """

    rows: Float32
    available: Bool
    bonus: Float32
    edges: Int64

    def best(self, weights: Float32) -> Float32:
        """`[texts, videos]`: the mixture similarity of each video's best item."""
        top = np.tensordot(weights, self.rows, 1)
        total = self.available.astype(np.float32) @ weights
        items = divide(top, np.broadcast_to(total, top.shape)) + self.bonus
        return np.asarray(np.maximum.reduceat(items, self.edges, axis=1), np.float32)


def row_scores(searcher: Searcher, model: Model, texts: Sequence[str], at: Int64, edges: Int64) -> RowScores:
    """Compare texts with the items in rows `at` of the snapshot, which stand video by video."""
    gallery = searcher.snapshot.gallery
    vectors, available = np.asarray(gallery.vectors[at]), np.asarray(gallery.available[at])
    rows = np.empty((len(model.experts), len(texts), len(at)), np.float32)
    bonus = np.zeros((len(texts), len(at)), np.float32)
    for start in range(0, len(texts), BATCH):
        span = slice(start, start + BATCH)
        queries = np.stack([query.vectors for query in model.encode(texts[span])])
        for row in range(len(model.experts)):
            rows[row, span] = queries[:, row] @ (vectors[:, row] * available[:, row, None]).T
    for number, text in enumerate(texts):
        bonus[number] = lexical_matches(searcher.snapshot, text).of(at)
    return RowScores(rows, available, bonus, edges)


@dataclass(frozen=True, eq=False)
class Strangers:
    """Captions of a collection, `owner [captions]`, scored row by row by a checkpoint that never saw it."""

    collection: str
    scores: RowScores
    owner: Int64

    def ranks(self, weights: Mapping[str, float]) -> Float64:
        values = np.array([weights[row] for row in WEIGHTS], np.float32)
        return np.asarray(ranks_of(self.scores.best(values), self.owner), np.float64)


def choosing(data: Path, name: str) -> Told:
    """The captions of a collection that weights are chosen on."""
    told = captions_of(data, name)
    if name == "msrvtt":
        chosen = told["all"]
    else:
        chosen = {**told.get("val", {}), **dict(list(told["train"].items())[:TRAINING])}
    return {video: texts[:CAPTIONS] for video, texts in chosen.items()}


def left_out(label: str) -> str:
    """The collection that a checkpoint was trained without.

    >>> left_out("without MSR-VTT"), left_out("default")
    ('msrvtt', '')
    """
    words = label.casefold().replace("-", "").split()
    return words[1] if len(words) > 1 and words[0] == "without" and words[1] in LIBRARIES else ""


def strangers(model: Encoded, library: Path, told: Told, cache: Path, name: str) -> Strangers:
    """Score a collection's captions row by row."""
    with View(library, cache, only=tuple(told)) as view:
        searcher = searcher_of(view, model)
        named = {i: contents_of(searcher, {i: ()}) for i in told}
        texts: dict[str, list[str]] = {}
        for i, contents in named.items():
            for content in contents:
                if content in searcher.snapshot:
                    texts.setdefault(content, []).extend(text.strip() for text in told[i])
        items = [searcher.snapshot.rows(content) for content in texts]
        at = np.array([row for own in items for row in own], np.int64)
        edges = np.cumsum([0, *map(len, items)])[:-1].astype(np.int64)
        queries = [text for group in texts.values() for text in group]
        model.prepare(queries)
        owner = np.repeat(np.arange(len(texts)), [len(group) for group in texts.values()])
        return Strangers(name, row_scores(searcher, model, queries, at, edges), owner)


def cost(some: Sequence[Strangers], weights: Mapping[str, float]) -> float:
    """The mean log rank, every collection counting the same however many checkpoints answer it."""
    by_collection: dict[str, list[float]] = {}
    for each in some:
        by_collection.setdefault(each.collection, []).append(float(np.log(each.ranks(weights)).mean()))
    return float(np.mean([np.mean(values) for values in by_collection.values()]))


def choose(some: Sequence[Strangers], start: Mapping[str, float] = WEIGHTS) -> Chosen:
    """Weights of the least cost; of equals, those they had."""
    weights = dict(start)
    least = cost(some, weights)
    for row in [name for name in weights if name != ROW] * PASSES:
        for candidate in GRID:
            tried = {**weights, row: candidate}
            found = cost(some, tried)
            if found < least - 1e-9:
                weights, least = tried, found
    return weights


def figures(some: Sequence[Strangers], collection: str, weights: Mapping[str, float]) -> Float32:
    """R@1, R@5 and R@10, the mean over the checkpoints that never saw the collection."""
    found: list[RetrievalMetrics] = [
        retrieval_metrics(each.ranks(weights)) for each in some if each.collection == collection
    ]
    return np.array([[one.r1, one.r5, one.r10] for one in found], np.float32).mean(axis=0)


def study(some: Sequence[Strangers]) -> dict[str, Any]:
    """The chosen weights, and every alternative on every collection."""
    chosen = choose(some)
    alternatives: dict[str, Chosen] = {
        "pictures alone": {row: float(row == ROW) for row in WEIGHTS},
        "shipped": dict(WEIGHTS),
        "chosen here": chosen,
    }
    collections = list(dict.fromkeys(each.collection for each in some))
    entries = []
    for collection in collections:
        rows = dict(alternatives)
        if others := [each for each in some if each.collection != collection]:
            rows["chosen on the others"] = choose(others)
        for label, weights in rows.items():
            recall = figures(some, collection, weights)
            entries.append(
                {
                    "collection": collection,
                    "label": label,
                    "weights": weights,
                    "recall": [float(value) for value in recall],
                    "sum": float(recall.sum()),
                }
            )
    return {"chosen": chosen, "rows": entries}


def text_of(result: Mapping[str, Any]) -> str:
    """The report as Markdown."""
    said = ", ".join(f"{row} {value:g}" for row, value in result["chosen"].items())
    parts = [
        "# The weights of the default model's rows\n",
        "Made by `studies/row_weights.py`, on videos that no checkpoint was trained on. "
        f"Chosen on all collections together: {said}.\n",
    ]
    for collection in dict.fromkeys(row["collection"] for row in result["rows"]):
        lines = [["weights", *(name for name in WEIGHTS), "R@1", "R@5", "R@10", "sum"]]
        for row in result["rows"]:
            if row["collection"] == collection:
                values = [f"{row['weights'][name]:g}" for name in WEIGHTS]
                lines.append([row["label"], *values, *(f"{v:.1f}" for v in [*row["recall"], row["sum"]])])
        parts.append(f"## {collection}\n\n{markdown(lines)}")
    return "\n".join(parts)


def main() -> None:
    arguments = parser(__doc__, "row_weights").parse_args()
    weights = [each for each in parse_weights(arguments.weights) if left_out(each.label)]
    facts = Facts("row_weights", arguments, weights)
    store, some = WeightStore(), []
    for given in weights:
        name = left_out(given.label)
        if (library := getattr(arguments, name)) is None:
            continue
        progress(f"{given.label} ({given.path.name})")
        model = Encoded(store, arguments.cache, given.path)
        facts.used(given.label, model)
        some.append(strangers(model, library, choosing(arguments.data, name), arguments.cache, name))
    if not some:
        raise SystemExit('give --weights "without COLLECTION=FILE" and the library of that collection')
    result = study(some)
    facts.write(result, text_of(result), {})


if __name__ == "__main__":
    main()
