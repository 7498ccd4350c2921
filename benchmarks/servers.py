"""Search by a server against the index of a library of that size, over the same items in the same run.

    # start the servers first, see docs/servers.md
    python benchmarks/servers.py postgresql://postgres@127.0.0.1/postgres --items 100000 --out FILE.json
    python benchmarks/servers.py 'milvus://127.0.0.1?mode=hnsw' --items 100000

Items are unit vectors of six experts around shared centres, a fifth of the experts absent; queries lie off
the items, as words do. The index here is the one that a library of so many items has (`index.cached`), and an
exact scan is the truth. Writes to a table of its own on the server and deletes it. JSON on standard output,
and in FILE.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from wordreel.index.base import Correction, Index
from wordreel.index.cached import builder_for
from wordreel.index.exact import ExactIndex
from wordreel.index.milvus import MilvusServer
from wordreel.index.postgresql import PostgreSQLServer
from wordreel.index.server import ServerIndex
from wordreel.index.vector_server import Layout
from wordreel.util.server_address import POSTGRESQL, parse_address

QUERIES = 50


def gallery(items: int, experts: int, dim: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Items, their availability and queries that lie off them."""
    random = np.random.default_rng(0)
    available = random.random((items, experts)) < 0.8
    available[random.random(items) < 0.7] = True  # most items have all experts
    centres = random.normal(size=(200, experts, dim)).astype(np.float32)
    vectors = centres[random.integers(0, 200, items)]
    vectors += random.standard_normal((items, experts, dim), np.float32)
    vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
    gap = random.normal(size=(1, experts, dim)).astype(np.float32)
    queries = centres[:QUERIES] + gap + random.standard_normal((QUERIES, experts, dim), np.float32)
    queries /= np.linalg.norm(queries, axis=2, keepdims=True)
    return vectors * available[..., None], available, queries


def embedded(folder: Path, vectors: np.ndarray, available: np.ndarray) -> Index:
    """The index of a library of so many items."""
    builder = builder_for(vectors)
    if builder is None:
        return ExactIndex(vectors, available)
    builder.build(folder, vectors, available)
    return builder.open(folder, vectors, available)


def recall(found: np.ndarray, true: np.ndarray) -> float:
    return round(float(np.mean([len(set(a) & set(b)) / 10 for a, b in zip(found, true, strict=True)])), 4)


def timed(index: Index, queries: np.ndarray, **more: object) -> tuple[np.ndarray, float]:
    """The ten best rows of each query, and the median milliseconds of one."""
    weights = np.ones(queries.shape[:2], np.float32)
    rows, seconds = [], []
    for query in range(len(queries)):
        start = time.perf_counter()
        some = slice(query, query + 1)
        rows.append(index.search(queries[some], weights[some], 10, **more).rows[0])  # type: ignore[arg-type]
        seconds.append(time.perf_counter() - start)
    return np.stack(rows), 1e3 * float(np.median(seconds))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("address")
    parser.add_argument("--items", type=int, default=20_000)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--experts", type=int, default=6)
    parser.add_argument("--dim", type=int, default=384)
    options = parser.parse_args()
    address = parse_address(options.address)
    layout = Layout.of("benchmark", f"{options.items}", options.experts, options.dim)
    kind = PostgreSQLServer if address.scheme == POSTGRESQL else MilvusServer
    server = kind(address, layout)
    vectors, available, queries = gallery(options.items, options.experts, options.dim)
    clips = np.arange(1, options.items + 1, dtype=np.int64)
    random = np.random.default_rng(1)
    bias = random.normal(scale=0.02, size=options.items).astype(np.float32)
    half = random.random(options.items) < 0.5
    exact = ExactIndex(vectors, available)
    report: dict[str, Any] = {"server": server.describe(), "mode": address.mode, "items": options.items}
    with tempfile.TemporaryDirectory() as folder:
        try:
            here = embedded(Path(folder), vectors, available)
            start = time.perf_counter()
            index = ServerIndex(server, clips, vectors, available, lambda: clips)
            report["send_s"] = round(time.perf_counter() - start, 1)
            ones = np.ones((1, options.experts), np.float32)
            start = time.perf_counter()
            index.search(queries[:1], ones, 1, correction=Correction(bias))
            report["new_normalisation_s"] = round(time.perf_counter() - start, 1)
            report["index_here"] = here.name
            for name, more in (
                ("plain", {}),
                ("normalised", {"correction": Correction(bias)}),
                ("half of them", {"allowed": half}),
            ):
                true, scan_ms = timed(exact, queries, **more)
                mine, here_ms = timed(here, queries, **more)
                found, server_ms = timed(index, queries, **more)
                report[name] = {
                    "server_ms": round(server_ms, 2),
                    "here_ms": round(here_ms, 2),
                    "scan_ms": round(scan_ms, 2),
                    "times_as_slow_as_here": round(server_ms / here_ms, 2),
                    "recall_at_10": recall(found, true),
                    "recall_at_10_here": recall(mine, true),
                }
        finally:
            server.drop()
            server.close()
    text = json.dumps(report, indent=2)
    print(text)
    if options.out:
        options.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
