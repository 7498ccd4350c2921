"""Compressed search: FAISS's 4-bit product quantisation, then exact scores of the candidates.

Each group of items (one pattern of available experts) is turned to its main directions, of which at most
`DIRECTIONS` are quantised: 4 bits for two of them, 128 bytes for an item. A search lets FAISS scan the codes
(`IndexPQFastScan`, one shard for each core) for `CANDIDATES` and scores those from the full vectors. Its
scores are exact, and a few of the best may be missing: recall is measured (`index.cached`).

A bias has two codes of its own in the scan, the digits of a number from 0 to 255. FAISS packs the codes again
for another bias, in some tenths of a second for a million items.

Filters leave out candidates, so a scan fetches more of them; where too few of those are left, every allowed
item is scored.

The files hold plain arrays and not FAISS's own format, which is no safe input: any bytes of the right length
are valid codes. FAISS is an optional extra.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordreel.index.base import Index, Rest
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
    write_groups,
)
from wordreel.progress import Progress, ProgressCallback
from wordreel.types import Bool, Float32, Int64
from wordreel.util.lru_cache import LRUCache
from wordreel.util.machine import cores

FEW = 1_024  # items of a group that are all scored
DIRECTIONS = 512  # that are quantised ...
WIDTH = 2  # ... so many by one code of
BITS = 4
SAMPLE = 16_384  # items that a quantiser is trained on
CHUNK = 16_384  # items encoded at once
ITERATIONS = 2  # towards the main directions
FIRST = 128  # candidates, beyond the results, that are scored at once; then as many again
CANDIDATES = 3_072  # of a search, beyond four times its results ...
DEEPEST = 16_384  # ... and with a filter at most
ONE_SHARD = 32_768  # items that are not worth a second thread
SPARE = 16  # candidates beyond the results that are scored in float64
DEVIATIONS = 4  # of the errors of approximate scores, which no other error exceeds
FILES: dict[str, type[np.generic]] = {
    "codes.bin": np.uint8,
    "centroids.bin": np.float32,
    "directions.bin": np.float32,
}


@dataclass(frozen=True)
class _Builder:
    """`IndexBuilder` of compressed search."""

    name: str = "fastscan"

    def build(
        self, folder: Path, vectors: Float32, available: Bool, on_progress: ProgressCallback | None = None
    ) -> None:
        write_groups(folder, available)
        done = 0
        with ExitStack() as opened:
            codes, centroids, maps = (opened.enter_context((folder / name).open("wb")) for name in FILES)
            for _, full in read_groups(folder, vectors):
                if not _compressed(full):
                    continue
                sample = np.random.default_rng(0).permutation(len(full))[:SAMPLE]
                items = full.take(np.sort(sample))
                directions = main_directions(items)
                quantiser = _train(items @ directions)
                directions.tofile(maps)
                _faiss().vector_to_array(quantiser.centroids).astype(np.float32).tofile(centroids)
                for start in range(0, len(full), CHUNK):
                    items = full.take(slice(start, start + CHUNK)) @ directions
                    quantiser.compute_codes(items).tofile(codes)
                    done += len(items)
                    if on_progress is not None:
                        on_progress(Progress("compressing items", done, len(vectors)))

    def open(self, folder: Path, vectors: Float32, available: Bool) -> Index:
        read = list(read_groups(folder, vectors))
        sizes = np.array([_sizes(full) for _, full in read], np.int64).reshape(-1, 3)
        files = [
            map_file(folder / name, kind, (int(total),))
            for (name, kind), total in zip(FILES.items(), sizes.sum(axis=0), strict=True)
        ]
        groups: list[Group] = []
        for (pattern, full), size, end in zip(read, sizes, sizes.cumsum(axis=0), strict=True):
            items: GroupItems = DirectItems(full)
            if _compressed(full):
                codes, centroids, directions = (
                    file[stop - count : stop] for file, count, stop in zip(files, size, end, strict=True)
                )
                codes, directions = codes.reshape(len(full), -1), directions.reshape(full.dim, -1)
                items = FastScanItems(full, codes, centroids, directions)
            groups.append(Group(pattern, full, items))
        return GroupedIndex(self.name, vectors, available, groups, exact=False)


BUILDER = _Builder()


def _compressed(full: FullVectors) -> bool:
    return len(full) > FEW and full.dim > 0


def _sizes(full: FullVectors) -> tuple[int, int, int]:
    """How many codes (two to a byte), centroids and numbers of directions a group has in the files."""
    if not _compressed(full):
        return 0, 0, 0
    width = min(DIRECTIONS, -(-full.dim // (2 * WIDTH)) * 2 * WIDTH)
    return len(full) * width // (2 * WIDTH), 2**BITS * width, full.dim * width


def main_directions(items: Float32) -> Float32:
    """Orthogonal directions `[dim, directions]` in which items differ most, turned at random.

    Found by orthogonal iteration. The turn spreads the variance over the codes; zeros fill up the last.

    >>> items = np.random.default_rng(0).normal(size=(50, 10)).astype(np.float32)
    >>> directions = main_directions(items)
    >>> directions.shape, np.allclose(items @ directions @ directions.T, items, atol=1e-5)
    ((10, 12), True)
    """
    finite = np.nan_to_num(items)
    centred = finite - finite.mean(axis=0)
    rng, dim = np.random.default_rng(0), items.shape[1]
    directions = rng.normal(size=(dim, min(dim, DIRECTIONS))).astype(np.float32)
    for _ in range(ITERATIONS):
        directions = np.linalg.qr(centred.T @ (centred @ directions))[0]
    count = directions.shape[1]
    turned = directions @ np.linalg.qr(rng.normal(size=(count, count)))[0]
    return np.pad(turned, ((0, 0), (0, -count % (2 * WIDTH)))).astype(np.float32)


def _train(items: Float32) -> Any:
    quantiser = _faiss().ProductQuantizer(items.shape[1], items.shape[1] // WIDTH, BITS)
    quantiser.cp.min_points_per_centroid = 1
    quantiser.train(np.nan_to_num(items))
    return quantiser


class FastScanItems:
    """A group's codes and its full vectors."""

    def __init__(
        self, full: FullVectors, codes: NDArray[np.uint8], centroids: Float32, directions: Float32
    ) -> None:
        self._full, self._codes, self._centroids, self._directions = full, codes, centroids, directions
        # A bias is held with the index that holds it, so that no other array can have the same id.
        self._indexes: LRUCache[int, tuple[Float32 | None, Any]] = LRUCache(2)  # plain and corrected

    def best(self, query: Float32, best: Running, penalty: Penalty | None, floor: float) -> Rest | None:
        items, k = len(self._full), best.k
        allowed = items if penalty is None else penalty.count
        wanted = min(CANDIDATES + 4 * k, allowed)
        depth = min(math.ceil(wanted * items / max(allowed, 1)), items)
        if depth > max(DEEPEST, wanted):
            return DirectItems(self._full).best(query, best, penalty, floor)
        scores, places = self._scan(query, depth, None if penalty is None else penalty.bias)
        end = -np.inf if len(places) == items else float(scores.min(initial=np.inf))
        if penalty is not None and penalty.allowed is not None:
            kept = penalty.allowed[places]
            places, scores = places[kept], scores[kept]
        if len(places) < k <= allowed:
            return DirectItems(self._full).best(query, best, penalty, floor)
        exact, rest = self._candidates(query, places, np.append(scores, end), k, penalty)
        chosen = np.argsort(-exact, kind="stable")[: k + SPARE]
        self._full.rescore(query, places[chosen], penalty, best)
        return rest

    def _scan(self, query: Float32, depth: int, bias: Float32 | None) -> tuple[Float32, Int64]:
        """Return approximate scores and places of the `depth` best items by the codes."""
        turned = query[None] @ self._directions
        if bias is not None:
            turned = np.pad(turned, ((0, 0), (0, 2 * WIDTH)))
            turned[:, [-2 * WIDTH, -WIDTH]] = 1
        shards = self._index(bias)

        def search(shard: Any) -> tuple[Float32, Int64]:
            scores, places = shard.search(turned, min(depth, shard.ntotal))
            return scores, places

        near, found, first = [], [], 0
        for shard, (scores, places) in zip(shards, _threads().map(search, shards), strict=True):
            near.append(scores[0])
            found.append(np.where(places[0] < 0, -1, places[0] + first))
            first += shard.ntotal
        every, at = np.concatenate(near), np.concatenate(found)
        best = np.argsort(-every, kind="stable")[:depth]
        best = best[at[best] >= 0]  # -1 is an item whose score 16-bit sums cannot tell from the worst
        return every[best] - (0 if bias is None else bias.min()), at[best]

    def _index(self, bias: Float32 | None) -> Any:
        known = self._indexes.get(id(bias))
        if known is None:
            known = bias, self._pack(bias)
            self._indexes.put(id(bias), known)
        return known[1]

    def _pack(self, bias: Float32 | None) -> Any:
        faiss = _faiss()
        codes, centroids = np.asarray(self._codes), self._centroids
        if bias is not None:
            low = bias.min()
            step = max(float(bias.max() - low), 1e-12) / 255
            codes = np.column_stack([codes, np.rint((bias - low) / step).astype(np.uint8)])
            digits = np.zeros((2, 16, WIDTH), np.float32)  # the lower four bits are the first code
            digits[:, :, 0] = -step * np.outer([1, 16], np.arange(16))
            centroids = np.concatenate([centroids, digits.ravel()])
        count = 2 * codes.shape[1]
        shards = []
        for part in np.array_split(codes, cores() if len(codes) > ONE_SHARD else 1):
            flat = faiss.IndexPQ(count * WIDTH, count, BITS, faiss.METRIC_INNER_PRODUCT)
            faiss.copy_array_to_vector(np.ascontiguousarray(centroids), flat.pq.centroids)
            faiss.copy_array_to_vector(part.ravel(), flat.codes)
            flat.ntotal, flat.is_trained = len(part), True
            shards.append(faiss.IndexPQFastScan(flat))
        return shards

    def _candidates(
        self, query: Float32, places: Int64, near: Float32, k: int, penalty: Penalty | None
    ) -> tuple[Float32, Rest]:
        """Exact scores of the best candidates, until the others are too far off, and a bound on those.

        `near` are the approximate scores of the candidates, best first, and the largest of all other items.
        """
        scores, rest = np.zeros(0, np.float32), Rest(places[:0], float(near[0]))
        end = FIRST + k
        while len(scores) < len(places):
            some = places[len(scores) : end]
            added = self._full.take(some) @ query
            if penalty is not None:
                added -= penalty.of(some)
            scores = np.concatenate([scores, added])
            errors = scores - near[: len(scores)]
            most = float(near[len(scores)] + errors.mean() + DEVIATIONS * errors.std())
            rest = Rest(places[: len(scores)], most)
            if len(scores) >= k and np.partition(scores, -k)[-k] > most:
                break
            end *= 2
        return scores, rest


def _faiss() -> Any:
    """Import an optional extra."""
    import faiss

    return faiss


@cache
def _threads() -> ThreadPoolExecutor:
    """Threads that scan a shard each; FAISS's own would wait for each other."""
    return ThreadPoolExecutor(cores(), "wordreel-scan", lambda: _faiss().omp_set_num_threads(1))
