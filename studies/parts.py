"""Which videos and pictures train the default model, choose it and test it: ids for `wordreel train --ids`.

    python studies/parts.py --data DATA --out parts.json

MSVD has its official lists, and all of the 240 MSR-VTT videos train. Of COCO 1,000 pictures test and 500
choose, of Flickr8k's training pictures 500 choose and dev tests. They are drawn by one generator of a fixed
seed, COCO's first, from the sorted ids.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from wordreel.lab.datasets.json_captions import read_ids
from wordreel.util.atomic import atomic_write

SEED, TESTING, CHOOSING = 7, 1_000, 500
Parts = dict[str, dict[str, list[str]]]


def drawn(ids: Sequence[str], rng: np.random.Generator, sizes: Sequence[int]) -> list[list[str]]:
    """Disjoint parts of the sorted ids of these sizes, then the rest.

    >>> parts = drawn(["b", "a", "c"], np.random.default_rng(7), [1])
    >>> sorted(parts[0] + parts[1]), [len(part) for part in parts]
    (['a', 'b', 'c'], [1, 2])
    """
    order = [sorted(ids)[place] for place in rng.permutation(len(ids))]
    edges = np.cumsum([0, *sizes]).tolist()
    return [order[start:end] for start, end in zip(edges, [*edges[1:], len(order)], strict=True)]


def parts_of(data: Path, testing: int = TESTING, choosing: int = CHOOSING) -> Parts:
    """Collection → part → ids, of the collections that the data folder has."""
    rng = np.random.default_rng(SEED)
    parts: Parts = {}
    if (data / "coco").is_dir():
        test, val, train = drawn(ids_of(data, "coco", "train"), rng, [testing, choosing])
        parts["coco"] = {"train": train, "val": val, "test": test}
    if (data / "flickr8k").is_dir():
        val, train = drawn(ids_of(data, "flickr8k", "train"), rng, [choosing])
        parts["flickr8k"] = {"train": train, "val": val, "test": ids_of(data, "flickr8k", "dev")}
    if (data / "msvd").is_dir():
        lists = data / "msvd" / "splits.json"
        parts["msvd"] = {s: list(read_ids(f"{lists}:official.{s}")) for s in ("train", "val", "test")}
    if (data / "msrvtt").is_dir():
        parts["msrvtt"] = {
            "train": sorted(json.loads((data / "msrvtt" / "captions.json").read_text("utf-8")))
        }
    return parts


def ids_of(data: Path, name: str, split: str) -> list[str]:
    """The ids of a split of `captions.json`."""
    return list(json.loads((data / name / "captions.json").read_text("utf-8"))[split])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder with the collections")
    parser.add_argument("--out", type=Path, required=True, help="the JSON file to write")
    arguments = parser.parse_args()
    atomic_write(arguments.out, json.dumps(parts_of(arguments.data), indent=1).encode())


if __name__ == "__main__":
    main()
