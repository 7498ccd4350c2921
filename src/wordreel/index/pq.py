"""Compressed scan with exact re-ranking: 4-bit product quantisation with the fast-scan kernels of FAISS.

Each group of items (one pattern of available experts) has one product quantiser: every one, two or four
dimensions become one of 16 centroids, so an item of 512 dimensions is 128 bytes. A search scans the codes for
a few hundred candidates and scores those from the full vectors; its scores are exact, and a few of the best
may be missing: recall is measured (`index.recall`). Groups of few items have 8-bit codes (`int8`) instead.

Corrections are folded in: four more codes per item hold its bias in 61 levels, as coordinates that the query
multiplies by the size of a level, or by 0 for a plain search. So one set of codes answers both. Another bias
replaces those two bytes of each item; the rest stays as it is.

Filters leave out candidates after the scan, which therefore fetches more of them, and deeper if too few
remain; what a deep scan would not find is scored directly.

The files hold plain arrays, not FAISS's own format, which is no safe input: any bytes of the right length are
valid codes. FAISS is an optional extra.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordreel.index import int8
from wordreel.index.base import Index, QuerySample
from wordreel.index.groups import (
    DirectItems,
    FullVectors,
    Group,
    GroupedIndex,
    GroupItems,
    Penalty,
    Running,
    map_file,
    read_groups,
    stack,
    write_groups,
)
from wordreel.progress import Progress, ProgressCallback
from wordreel.types import Bool, Float32, Float64, Int64

FEW = 16_384  # items of a group that are searched by their 8-bit codes
SUBSPACES = ((256, 1), (1_024, 2))  # dimensions to a code, for items of at most so many; ...
WIDEST = 4  # ... and beyond
SAMPLE = 16_384  # items that a quantiser is trained on
CHUNK = 16_384  # items encoded at once; a multiple of LANES
SHARD = 262_144  # items scanned by one thread; a multiple of LANES
LANES = 32  # items whose codes the kernels interleave
CANDIDATES = (1_000, 20)  # items that are re-ranked: the first, and the second for each result
DEEPEST = 16_384  # candidates fetched for the sake of a filter
BIAS_CODES = 4
LEVELS = 15 * BIAS_CODES
OUTLIERS = 0.999  # larger biases than this share of the items count as equal
CODES, CENTROIDS, LAYOUT = "pq.bin", "centroids.bin", "quantisers.json"
# Where the kernels want the 32 items of a lane: the low halves of both bytes first, interleaved.
_ORDER = np.array([0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15])


@dataclass(frozen=True)
class _Builder:
    """`IndexBuilder` of compressed search."""

    name: str = "pq"

    def build(
        self,
        folder: Path,
        vectors: Float32,
        available: Bool,
        queries: QuerySample | None,
        on_progress: ProgressCallback | None = None,
    ) -> None:
        write_groups(folder, available)
        done, layout = 0, []
        with (folder / CODES).open("wb") as codes, (folder / CENTROIDS).open("wb") as centroids:
            for _, full in read_groups(folder, vectors):
                if not _compressed(full):
                    continue
                quantiser = _pool().submit(_train, full).result()
                _faiss().vector_to_array(quantiser.centroids).astype(np.float32).tofile(centroids)
                layout.append({"subspaces": quantiser.M, "dim": quantiser.d})
                starts = range(0, len(full), CHUNK)
                for part in _pool().map(partial(_encode, full, quantiser), starts):
                    part.tofile(codes)
                    done += CHUNK
                    if on_progress is not None:
                        on_progress(Progress("compressing items", min(done, len(vectors)), len(vectors)))
        (folder / LAYOUT).write_text(json.dumps(layout))
        int8.write_codes(folder, [full for _, full in read_groups(folder, vectors) if _small(full)])

    def open(self, folder: Path, vectors: Float32, available: Bool) -> Index:
        read = list(read_groups(folder, vectors))
        layout = [Quantiser.of(entry) for entry in json.loads((folder / LAYOUT).read_text())]
        large = [full for _, full in read if _compressed(full)]
        if [entry.dim for entry in layout] != [_shape(full)[1] for full in large]:
            raise ValueError(f"{folder / LAYOUT} is of other items")
        lanes = [-(-len(full) // LANES) for full in large]
        sizes = [count * LANES * entry.subspaces // 2 for count, entry in zip(lanes, layout, strict=True)]
        codes = map_file(folder / CODES, np.uint8, (sum(sizes),))
        centroids = map_file(folder / CENTROIDS, np.float32, (16 * sum(entry.dim for entry in layout),))
        small = iter(int8.open_codes(folder, [full for _, full in read if _small(full)]))
        groups: list[Group] = []
        code = centroid = 0
        for pattern, full in read:
            items: GroupItems = next(small) if _small(full) else DirectItems(full)
            if _compressed(full):
                entry, count, size = layout.pop(0), lanes.pop(0), sizes.pop(0)
                own = codes[code : code + size].reshape(count, entry.subspaces // 2, LANES)
                items = PqItems(full, own, centroids[centroid : centroid + 16 * entry.dim])
                code, centroid = code + size, centroid + 16 * entry.dim
            groups.append(Group(pattern, full, items))
        return GroupedIndex(self.name, vectors, available, groups, exact=False)


BUILDER = _Builder()


@dataclass(frozen=True)
class Quantiser:
    """Sizes of a product quantiser: `subspaces`, an even number, of `dim` dimensions together."""

    subspaces: int
    dim: int

    @classmethod
    def of(cls, entry: dict[str, int]) -> Quantiser:
        made = cls(int(entry["subspaces"]), int(entry["dim"]))
        if made.subspaces < 2 or made.subspaces % 2 or made.dim % made.subspaces:
            raise ValueError(f"{made} is no quantiser of this index")
        return made


def _compressed(full: FullVectors) -> bool:
    return len(full) > FEW and full.dim > 0


def _small(full: FullVectors) -> bool:
    return int8.has_codes(full) and not _compressed(full)


def _shape(full: FullVectors) -> tuple[int, int]:
    """Codes of an item, an even number, and its dimensions filled up to that many subspaces."""
    width = next((width for most, width in SUBSPACES if full.dim <= most), WIDEST)
    subspaces = -(-full.dim // (2 * width)) * 2
    return subspaces, subspaces * width


def _widen(items: Float32, dim: int) -> Float32:
    return np.ascontiguousarray(np.pad(items, ((0, 0), (0, dim - items.shape[1]))), np.float32)


def _train(full: FullVectors) -> Any:
    subspaces, dim = _shape(full)
    quantiser = _faiss().ProductQuantizer(dim, subspaces, 4)
    quantiser.cp.min_points_per_centroid = 1
    chosen = np.random.default_rng(0).permutation(len(full))[:SAMPLE]
    quantiser.train(_widen(full.take(np.sort(chosen)), dim))
    return quantiser


def _encode(full: FullVectors, quantiser: Any, start: int) -> NDArray[np.uint8]:
    items = _widen(full.take(slice(start, start + CHUNK)), quantiser.d)
    return interleave(quantiser.compute_codes(items))


def interleave(codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Codes `[n, bytes]`, two to a byte, as the kernels read them: `[lanes, bytes, 32]`, filled with 0."""
    lanes = -(-len(codes) // LANES)
    whole = np.zeros((lanes * LANES, codes.shape[1]), np.uint8)
    whole[: len(codes)] = codes
    by_byte = whole.reshape(lanes, LANES, -1).transpose(0, 2, 1)
    first, second = by_byte & 15, by_byte >> 4
    halves = [part[:, :, _ORDER] | (part[:, :, _ORDER + 16] << 4) for part in (first, second)]
    return np.concatenate(halves, axis=2)


class PqItems:
    """A group's codes with room for a bias, in shards; its full vectors for the last word."""

    def __init__(self, full: FullVectors, codes: NDArray[np.uint8], centroids: Float32) -> None:
        self._full = full
        self._stored = codes, centroids
        self._shards: list[Any] = []
        self._bias: Float32 | None = None
        self._level = 0.0
        self._lock = _ReadWriteLock()

    def best(
        self, queries: Float32, k: int, penalty: Penalty | None, floor: Float64
    ) -> tuple[Int64, Float64]:
        bias = None if penalty is None else penalty.bias
        allowed = None if penalty is None else np.isfinite(penalty.values)
        enough = CANDIDATES[0] + CANDIDATES[1] * k
        excess = 1.0 if allowed is None else 1.2 * len(allowed) / max(1, int(np.count_nonzero(allowed)))
        running = [Running(k) for _ in queries]
        waiting, depth = np.arange(len(queries)), int(np.ceil(excess * enough))
        while len(waiting) and depth < len(self._full) and depth <= max(DEEPEST, enough):
            candidates = self._scan(queries[waiting], depth, bias)
            short = []
            for number, places in zip(waiting, candidates, strict=True):
                near = places if allowed is None else places[allowed[places]]
                if len(near) < enough:
                    short.append(number)
                else:
                    self._full.rescore(queries[number], near[:enough], penalty, running[number])
            waiting, depth = np.array(short, np.int64), 4 * depth
        if len(waiting):
            places, scores = DirectItems(self._full).best(queries[waiting], k, penalty, floor[waiting])
            for row, number in enumerate(waiting):
                found = places[row] >= 0
                running[number].take(places[row][found], scores[row][found])
        return stack(running, k)

    def _scan(self, queries: Float32, depth: int, bias: Float32 | None) -> list[Int64]:
        """The `depth` best places of each query by its codes, best first."""
        with self._reading(bias):
            dim = self._shards[0].d
            width = dim // self._shards[0].pq.M
            wide = np.zeros((len(queries), dim), np.float32)
            wide[:, : queries.shape[1]] = queries
            if bias is not None:
                wide[:, dim - BIAS_CODES * width :: width] = self._level
            found = list(
                _pool().map(lambda shard: shard.search(wide, min(depth, shard.ntotal)), self._shards)
            )
        scores = np.concatenate([part[0] for part in found], axis=1)
        # -1 stands for an item whose score the 16-bit sums of the kernels cannot tell from the worst.
        places = np.concatenate(
            [np.where(part[1] < 0, -1, part[1] + n * SHARD) for n, part in enumerate(found)], axis=1
        )
        order = np.argsort(-scores, axis=1, kind="stable")[:, :depth]
        return [row[one][row[one] >= 0] for row, one in zip(places, order, strict=True)]

    @contextmanager
    def _reading(self, bias: Float32 | None) -> Iterator[None]:
        """Hold the codes, with this bias in them."""
        while True:
            with self._lock.read():
                if self._shards and (bias is None or bias is self._bias):
                    yield
                    return
            with self._lock.write():
                if not self._shards:
                    self._shards = list(self._load())
                if bias is not None and bias is not self._bias:
                    self._write_bias(bias)

    def _load(self) -> Iterator[Any]:
        faiss = _faiss()
        codes, centroids = self._stored
        subspaces = 2 * codes.shape[1]
        width = len(centroids) // 16 // subspaces
        levels = np.zeros((BIAS_CODES, 16, width), np.float32)
        levels[:, :, 0] = -np.arange(16)
        every = np.concatenate([centroids, levels.ravel()])
        for start in range(0, len(self._full), SHARD):
            own = codes[start // LANES : (start + SHARD) // LANES]
            room = np.zeros((len(own), codes.shape[1] + BIAS_CODES // 2, LANES), np.uint8)
            room[:, : codes.shape[1]] = own
            shard = faiss.IndexPQFastScan(
                (subspaces + BIAS_CODES) * width, subspaces + BIAS_CODES, 4, faiss.METRIC_INNER_PRODUCT
            )
            faiss.copy_array_to_vector(every, shard.pq.centroids)
            faiss.copy_array_to_AlignedTable(room.ravel(), shard.codes)
            shard.ntotal = min(SHARD, len(self._full) - start)
            shard.ntotal2 = len(own) * LANES
            shard.is_trained = True
            yield shard

    def _write_bias(self, bias: Float32) -> None:
        faiss = _faiss()
        low, high = float(bias.min()), float(np.quantile(bias, OUTLIERS))
        self._level = max(high - low, 1e-12) / LEVELS
        levels = np.clip(np.rint((bias - low) / self._level), 0, LEVELS).astype(np.int16)
        parts = [np.clip(levels - 15 * number, 0, 15).astype(np.uint8) for number in range(BIAS_CODES)]
        packed = np.stack([parts[n] | (parts[n + 1] << 4) for n in range(0, BIAS_CODES, 2)], axis=1)
        for number, shard in enumerate(self._shards):
            own = interleave(packed[number * SHARD : (number + 1) * SHARD])
            room = faiss.rev_swig_ptr(shard.codes.get(), shard.codes.size())
            room.reshape(len(own), -1, LANES)[:, -BIAS_CODES // 2 :] = own
        self._bias = bias


class _ReadWriteLock:
    """Many readers or one writer."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._readers = 0

    @contextmanager
    def read(self) -> Iterator[None]:
        with self._changed:
            self._readers += 1
        try:
            yield
        finally:
            with self._changed:
                self._readers -= 1
                self._changed.notify_all()

    @contextmanager
    def write(self) -> Iterator[None]:
        with self._changed:
            self._changed.wait_for(lambda: self._readers == 0)
            yield


@cache
def _pool() -> ThreadPoolExecutor:
    """Threads that encode and scan, one for each core; those of FAISS would wait for each other."""
    return ThreadPoolExecutor(os.cpu_count(), "wordreel-pq", lambda: _faiss().omp_set_num_threads(1))


def _faiss() -> Any:
    import faiss

    return faiss
