"""What it gains and costs to encode queries as `wordreel serve` does, with one small network in 8 bits.

    python benchmarks/query_encoder.py LIBRARY CAPTIONS [--most 8] [--queries 200] [--out FILE.json]

Both ways encode the same queries in turns, one at a time: median milliseconds and processor time. CAPTIONS
(`wordreel evaluate` reads the same files) are then asked for, at most MOST of each video: recall of the plain
ranking both ways, and the cosine of the two embeddings of each expert.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from wordreel.api import Library
from wordreel.atomic import atomic_write
from wordreel.banks.caption_queries import CaptionQueries, caption_queries
from wordreel.banks.everyday import queries
from wordreel.lab.datasets import registry
from wordreel.models.base import Model
from wordreel.retrieval.ranks import ranks_of
from wordreel.search.searcher import Searcher

WAYS = {"exact": "encode", "small": "encode_fast"}
KS = (1, 5, 10)
BLOCK = 64


def speed(model: Model, count: int) -> dict[str, dict[str, float]]:
    pool = queries()
    texts = [f"{one} {two}" for one, two in zip(pool[: 4 * count : 4], pool[1 : 4 * count : 4], strict=False)]
    wall: dict[str, list[float]] = {way: [] for way in WAYS}
    cpu = dict.fromkeys(WAYS, 0.0)
    for number, text in enumerate(texts):
        for way, name in WAYS.items():
            before = time.perf_counter(), time.process_time()
            getattr(model, name)([f"{text} {way == 'exact'}"])  # a text is encoded once
            if number >= 10:
                wall[way].append(1e3 * (time.perf_counter() - before[0]))
                cpu[way] += time.process_time() - before[1]
    return {
        way: {"median_ms": float(np.median(wall[way])), "cpu_ms": 1e3 * cpu[way] / len(wall[way])}
        for way in WAYS
    }


def recall(searcher: Searcher, asked: CaptionQueries) -> tuple[dict[str, dict[str, float]], dict[str, float]]:
    """R@K both ways, and the mean cosine by expert."""
    ranks: dict[str, list[Any]] = {way: [] for way in WAYS}
    cosines = np.zeros(len(searcher.model.experts))
    for start in range(0, len(asked.texts), BLOCK):
        some = asked.texts[start : start + BLOCK]
        vectors = []
        for way, name in WAYS.items():
            # Apart: what one way has encoded, the other would reuse.
            made = getattr(searcher.model, name)([f"{text} " if way == "exact" else text for text in some])
            vectors.append(np.stack([one.vectors for one in made]))
            scores = searcher.encoded_scores(searcher.with_words(some, made))[:, asked.columns]
            ranks[way].append(ranks_of(scores, asked.right[start : start + len(some)]))
        cosines += (vectors[0] * vectors[1]).sum(axis=(0, 2))
    found = {way: np.concatenate(rows) for way, rows in ranks.items()}
    return (
        {way: {f"R@{k}": float(100 * (rows <= k).mean()) for k in KS} for way, rows in found.items()},
        dict(zip(searcher.model.experts, (cosines / len(asked.texts)).tolist(), strict=True)),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("library", type=Path)
    parser.add_argument("captions")
    parser.add_argument("--most", type=int, default=8, help="captions of each video")
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    told = registry.read(arguments.captions).captions
    captions = {name: texts[: arguments.most] for name, texts in told.items()}
    with Library(arguments.library, create=False) as library:
        report: dict[str, Any] = {
            "model": library.model.name,
            "speed": speed(library.model, arguments.queries),
        }
        searcher = Searcher.open(library.store, library.model)
        asked = caption_queries(searcher, captions)
        report |= {"captions": len(asked.texts), "videos": len(asked.contents)}
        report["recall"], report["cosine"] = recall(searcher, asked)
    text = json.dumps(report, indent=2)
    print(text)
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(arguments.out, text.encode() + b"\n")


if __name__ == "__main__":
    main()
