"""Certified and compressed search against exact scans of float32 vectors and graph indexes, in one run.

    python benchmarks/index.py [ITEMS DIM] [--queries 64] [--graphs] [--rounds 9] [--out FILE]

Items are unit vectors around centres; the queries lie around the same centres, pushed aside as text is from
video, with more noise. The ten best of each query by a float64 scan are the truth. Measured are

- exact: `f @ q` and the best of it with NumPy and with torch, and FAISS flat, all over float32;
- `int8`: certified exact search (`wordreel.index.int8`), whose results must be the truth;
- `fastscan`: compressed search (`wordreel.index.fastscan`), plain and with the bias of an inverted softmax;
- with `--graphs`: FAISS HNSW and hnswlib at the least `ef` that reaches the recall of `fastscan`; building
  them takes minutes.

Times are medians of rounds in which all take turns, for one query and for a batch of 64; ratios are to the
fastest exact scan of the same round. FAISS, hnswlib and torch are left out where they are not installed. JSON
on standard output and in FILE.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from wordreel.hubness import make_method, product
from wordreel.index import fastscan, int8
from wordreel.index.base import Correction, Index
from wordreel.types import Float32

K, BATCH = 10, 64
CHUNK = 65_536
EFS = (16, 32, 64, 128, 256, 512, 1_024, 2_048, 4_096, 8_192, 16_384)


def world(folder: Path, items: int, queries: int, bank: int, dim: int) -> tuple[Float32, Float32, Float32]:
    """Memory-mapped items, queries and a bank."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(max(items // 50, 1), dim)).astype(np.float32)
    gap = rng.normal(size=dim).astype(np.float32)

    def around(count: int, spread: float, push: float) -> Float32:
        chosen = rng.zipf(1.3, size=count) % len(centres)
        made = centres[chosen] + spread * rng.standard_normal((count, dim), np.float32) + push * gap
        return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)

    path = folder / "vectors.bin"
    with path.open("wb") as out:
        for start in range(0, items, CHUNK):
            around(min(CHUNK, items - start), 0.8, 0.0).tofile(out)
    gallery = np.memmap(path, np.float32, "r", shape=(items, dim))
    return gallery, around(queries, 1.2, 0.6), around(bank, 1.2, 0.6)


def truth(gallery: Float32, queries: Float32, bias: Float32 | None) -> tuple[Any, Any]:
    """Rows and scores of the ten best, in float64."""
    rows = np.zeros((len(queries), 0), np.int64)
    scores = np.zeros((len(queries), 0))
    for start in range(0, len(gallery), CHUNK):
        part = queries.astype(np.float64) @ gallery[start : start + CHUNK].T.astype(np.float64)
        part -= 0 if bias is None else bias[start : start + CHUNK]
        head = np.argpartition(-part, K, axis=1)[:, :K]
        rows = np.concatenate([rows, start + head], axis=1)
        scores = np.concatenate([scores, np.take_along_axis(part, head, axis=1)], axis=1)
        order = np.argsort(-scores, axis=1, kind="stable")[:, :K]
        rows, scores = np.take_along_axis(rows, order, axis=1), np.take_along_axis(scores, order, axis=1)
    return rows, scores


def recall(found: Any, true: Any) -> float:
    shares = [len(set(a.tolist()) & set(b.tolist())) / K for a, b in zip(found, true, strict=True)]
    return round(float(np.mean(shares)), 5)


def numpy_search(gallery: Float32) -> Callable[[Float32], Any]:
    def search(queries: Float32) -> Any:
        best = [(gallery[s : s + CHUNK] @ queries.T).T for s in range(0, len(gallery), CHUNK)]
        scores = np.concatenate(best, axis=1)
        head = np.argpartition(scores, -K, axis=1)[:, -K:]
        order = np.argsort(-np.take_along_axis(scores, head, axis=1), axis=1)
        return np.take_along_axis(head, order, axis=1)

    return search


def torch_search(gallery: Float32) -> Callable[[Float32], Any]:
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the file is mapped for reading only, and is only read
        items = torch.from_numpy(gallery)

    def search(queries: Float32) -> Any:
        asked = torch.from_numpy(queries)
        parts = []
        for start in range(0, len(items), 16_384):
            part = (items[start : start + 16_384] @ asked.T).T.topk(K, dim=1)
            parts.append((part.values, part.indices + start))
        values, rows = (torch.cat([part[n] for part in parts], dim=1) for n in range(2))
        return rows.gather(1, values.topk(K, dim=1).indices).numpy()

    return search


def flat_search(gallery: Float32) -> Callable[[Float32], Any]:
    import faiss

    # Without a copy of the vectors.
    return lambda queries: faiss.knn(queries, gallery, K, metric=faiss.METRIC_INNER_PRODUCT)[1]


def ours(index: Index, correction: Correction | None = None) -> Callable[[Float32], Any]:
    def search(queries: Float32) -> Any:
        return index.search(
            queries[:, None], np.ones((len(queries), 1), np.float32), K, None, correction
        ).rows

    return search


def build(builder: Any, folder: Path, gallery: Float32) -> tuple[Index, dict[str, Any]]:
    folder.mkdir()
    vectors, available = gallery[:, None], np.ones((len(gallery), 1), bool)
    start, busy = time.perf_counter(), time.process_time()
    builder.build(folder, vectors, available)
    took, busy = time.perf_counter() - start, time.process_time() - busy
    size = sum(path.stat().st_size for path in folder.iterdir()) / len(gallery)
    return builder.open(folder, vectors, available), {
        "build_seconds": round(took, 1),
        "build_cpu_seconds": round(busy, 1),
        "bytes_per_item": round(size, 1),
    }


def graphs(gallery: Float32, queries: Float32, true: Any, wanted: float) -> dict[str, Any]:
    """Graph indexes, one at a time: the least `ef` that reaches the wanted recall, and its time."""
    found: dict[str, Any] = {}
    if find_spec("faiss"):
        found["faiss_hnsw32"] = _graph(_faiss_graph, gallery, queries, true, wanted)
    if find_spec("hnswlib"):
        found["hnswlib_m16"] = _graph(_hnswlib_graph, gallery, queries, true, wanted)
    return found


def _graph(make: Any, gallery: Float32, queries: Float32, true: Any, wanted: float) -> dict[str, Any]:
    start, busy = time.perf_counter(), time.process_time()
    search, links = make(gallery)
    built, busy = time.perf_counter() - start, time.process_time() - busy
    curve = []
    for ef in EFS:
        reached = recall(search(queries, ef), true)
        curve.append({"ef": ef, "recall": reached, "milliseconds": _one_by_one(search, queries, ef)})
        if reached >= wanted:
            break
    return {
        **curve[-1],
        "build_seconds": round(built, 1),
        "build_cpu_seconds": round(busy, 1),
        "bytes_per_item": 4 * gallery.shape[1] + links,
        "curve": curve,
    }


def _one_by_one(search: Any, queries: Float32, ef: int) -> float:
    """The median milliseconds of a query."""
    times = []
    for query in queries:
        start = time.perf_counter()
        search(query[None], ef)
        times.append(time.perf_counter() - start)
    return round(1e3 * statistics.median(times), 3)


def _faiss_graph(gallery: Float32) -> tuple[Any, int]:
    import faiss

    index = faiss.IndexHNSWFlat(gallery.shape[1], 32, faiss.METRIC_INNER_PRODUCT)
    for start in range(0, len(gallery), CHUNK):
        index.add(np.ascontiguousarray(gallery[start : start + CHUNK]))

    def search(queries: Float32, ef: int) -> Any:
        index.hnsw.efSearch = ef
        return index.search(queries, K)[1]

    return search, 4 * 64


def _hnswlib_graph(gallery: Float32) -> tuple[Any, int]:
    import hnswlib

    index = hnswlib.Index("ip", gallery.shape[1])
    index.init_index(len(gallery), ef_construction=200, M=16)
    for start in range(0, len(gallery), CHUNK):
        part = np.ascontiguousarray(gallery[start : start + CHUNK])
        index.add_items(part, np.arange(start, start + len(part)), num_threads=os.cpu_count())

    def search(queries: Float32, ef: int) -> Any:
        index.set_ef(max(ef, K))
        return index.knn_query(queries, K)[0].astype(np.int64)

    return search, 4 * 33


def rounds(work: dict[str, Callable[[], object]], count: int) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in work}
    for number in range(count + 1):
        for name, run in work.items():
            start = time.perf_counter()
            run()
            if number:  # the first round loads and warms up
                times[name].append(time.perf_counter() - start)
    return times


def compare(times: dict[str, list[float]], peers: list[str]) -> dict[str, Any]:
    fastest = np.min([times[name] for name in peers], axis=0)
    return {
        "milliseconds": {name: round(1e3 * statistics.median(took), 2) for name, took in times.items()},
        "times_as_fast_as_fastest_exact": {
            name: round(float(np.median(fastest / np.array(took))), 2) for name, took in times.items()
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sizes", nargs="*", type=int, metavar="ITEMS DIM")
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--graphs", action="store_true")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    items, dim = given.sizes or (1_000_000, 512)
    with tempfile.TemporaryDirectory() as folder:
        report = measure(Path(folder), items, dim, given)
    text = json.dumps(report, indent=2)
    print(text)
    if given.out:
        given.out.write_text(text + "\n")


def measure(folder: Path, items: int, dim: int, given: argparse.Namespace) -> dict[str, Any]:
    gallery, queries, bank = world(folder, items, max(given.queries, BATCH), 1_000, dim)
    state = make_method("is", beta=20.0).fit(product(bank, gallery))
    correction = Correction(state.bias())
    true = {"plain": truth(gallery, queries, None)[0], "is": truth(gallery, queries, correction.bias)[0]}
    exact = {"numpy": numpy_search(gallery)}
    if find_spec("torch"):
        exact["torch"] = torch_search(gallery)
    if find_spec("faiss"):
        exact["faiss_flat"] = flat_search(gallery)
    report: dict[str, Any] = {"items": items, "dim": dim, "queries": len(queries), "cores": os.cpu_count()}
    work: dict[str, Callable[[Float32], Any]] = dict(exact)
    for builder in (int8.BUILDER, *((fastscan.BUILDER,) if find_spec("faiss") else ())):
        index, facts = build(builder, folder / builder.name, gallery)
        work[builder.name] = ours(index)
        work[f"{builder.name}_corrected"] = ours(index, correction)
        facts["recall_at_10"] = {
            "plain": recall(ours(index)(queries), true["plain"]),
            "corrected": recall(ours(index, correction)(queries), true["is"]),
        }
        report[builder.name] = facts
    number = iter(range(10**9))

    def one(search: Callable[[Float32], Any]) -> Callable[[], object]:
        return lambda: search(queries[(at := next(number) % len(queries)) : at + 1])

    report["one_query"] = compare(
        rounds({name: one(search) for name, search in work.items()}, given.rounds), list(exact)
    )

    def batch(search: Callable[[Float32], Any]) -> Callable[[], object]:
        return lambda: search(queries[:BATCH])

    report["batch_64"] = compare(
        rounds({name: batch(search) for name, search in work.items()}, max(1, given.rounds // 3)), list(exact)
    )
    if given.graphs:
        wanted = report["fastscan"]["recall_at_10"]["plain"] if "fastscan" in report else 0.999
        report["graphs"] = graphs(gallery, queries, true["plain"], wanted)
    return report


if __name__ == "__main__":
    main()
