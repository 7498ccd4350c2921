"""Search by a server against exact search in this process, over the same items in the same run.

    # start the servers first, see docs/servers.md
    python benchmarks/servers.py postgresql://postgres@127.0.0.1/postgres --items 20000
    python benchmarks/servers.py 'milvus://127.0.0.1?mode=hnsw' --items 20000

Items are unit vectors of six experts around shared centres, a fifth of the experts absent; queries lie off
the items, as words do. Writes to a table of its own and deletes it.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from wordreel.index.base import Correction
from wordreel.index.exact import ExactIndex
from wordreel.index.milvus import MilvusServer
from wordreel.index.postgresql import PostgreSQLServer
from wordreel.index.server import ServerIndex
from wordreel.index.vector_server import Layout
from wordreel.server_address import POSTGRESQL, parse_address

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


def timed(index: ServerIndex | ExactIndex, queries: np.ndarray, **more: object) -> tuple[np.ndarray, float]:
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
    try:
        start = time.perf_counter()
        index = ServerIndex(server, clips, vectors, available, lambda: clips)
        seconds = time.perf_counter() - start
        print(f"{address}, {server.describe()}, {options.items} items of {options.experts} × {options.dim}")
        print(f"sent in {seconds:.1f} s, {options.items / seconds:.0f} items/s")
        start = time.perf_counter()
        index.search(queries[:1], np.ones((1, options.experts), np.float32), 1, correction=Correction(bias))
        print(f"a new normalisation: {time.perf_counter() - start:.1f} s")
        print(f"{'search':<24} {'server ms':>9} {'here ms':>8} {'ratio':>6} {'recall@10':>9}")
        for name, more in (
            ("plain", {}),
            ("normalised", {"correction": Correction(bias)}),
            ("half of them, filtered", {"allowed": half}),
        ):
            found, mine = timed(index, queries, **more)
            true, here = timed(exact, queries, **more)
            recall = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(found, true, strict=True)])
            print(f"{name:<24} {mine:>9.1f} {here:>8.1f} {mine / here:>6.1f} {recall:>9.3f}")
    finally:
        server.drop()
        server.close()


if __name__ == "__main__":
    main()
