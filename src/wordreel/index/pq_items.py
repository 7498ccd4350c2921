"""Candidates of a compressed group from its 4-bit codes, and their scores from the full vectors.

The codes of a shard, scanned by one thread, give its items in the order of approximate scores. A search
scores them from the full vectors, best first, in blocks that double, and compares the two scores: in the last
block their difference has mean μ and standard deviation σ. An item that is not scored yet is approximately at
most a, so it is among the best k with a probability of at most Q((s − a − μ) / σ), where s is the k-th score
so far and Q the upper tail of the normal distribution. Items unlike most have larger differences than a
normal distribution would, so σ is at least what the largest of n differences suggests, which is σ √(2 ln n)
above the mean of a normal distribution. The search ends when, among as many further items as
it has scored, fewer than `MISSED` of the results are expected. So easy queries score few items and hard ones
many, whatever the number of results, the bias, or the filter.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordreel.index.base import Rest
from wordreel.index.groups import DirectItems, FullVectors, GroupBest, Penalty, Running, stack
from wordreel.index.pq_codes import LANES, interleave, load_faiss, scores_of
from wordreel.index.pq_reduction import BITS, WIDTH, Reduction
from wordreel.types import Bool, Float32, Float64, Int64

SHARD = 262_144  # items scanned by one thread, at most
ONE_SHARD = 32_768  # items that are not worth a second thread
DEPTH = 3_072  # candidates of a shard at first ...
DEEPEST = 16_384  # ... and at most
FIRST = 128  # candidates of a shard, beyond the results, in the first block
MISSED = 0.002  # of the results, by a bound that is several times too high
SURE = 5  # standard deviations that an approximation is not off by
SPARE = 16  # items beyond the results that are scored in float64
BIAS_CODES = 8
LEVELS = 15 * BIAS_CODES
OUTLIERS = 0.999  # larger biases than this share of the items count as equal


class PqItems:
    """A group's codes with room for a bias, in shards; its full vectors for the last word."""

    def __init__(
        self, full: FullVectors, codes: NDArray[np.uint8], centroids: Float32, reduction: Reduction
    ) -> None:
        self._full, self._reduction = full, reduction
        self._shard = shard_size(len(full))
        self._stored = codes, centroids
        self._shards: list[Any] = []
        self._bias: Float32 | None = None
        self._level = self._lowest = 0.0
        self._lock = _ReadWriteLock()

    def best(self, queries: Float32, k: int, penalty: Penalty | None, floor: Float64) -> GroupBest:
        allowed = None if penalty is None else penalty.allowed
        share = 1.0 if penalty is None else penalty.count / len(penalty.values)
        running = [Running(k) for _ in queries]
        rests: list[Rest | None] = [None] * len(queries)
        enough = DEPTH + k
        waiting, depth = np.arange(len(queries)), math.ceil(enough / max(share, 1e-9))
        while len(waiting) and depth <= max(DEEPEST, enough):
            scans = self._scan(queries[waiting], depth, penalty, allowed)
            searches = [
                _Search(self._full, queries[number], k, penalty, float(floor[number]), own)
                for number, own in zip(waiting, scans, strict=True)
            ]
            _finish(searches)
            deepest, short = 4 * depth > max(DEEPEST, enough), []
            for number, search in zip(waiting, searches, strict=True):
                if search.complete or (deepest and search.candidates >= enough):
                    self._full.rescore(queries[number], search.best(), penalty, running[number])
                    rests[number] = search.rest()
                else:
                    short.append(number)
            waiting, depth = np.array(short, np.int64), 4 * depth
        if len(waiting):
            direct = DirectItems(self._full).best(queries[waiting], k, penalty, floor[waiting])
            for places, scores, number in zip(direct.places, direct.scores, waiting, strict=True):
                running[number].take(places[places >= 0], scores[places >= 0])
        return stack(running, k, rests)

    def _scan(
        self, queries: Float32, depth: int, penalty: Penalty | None, allowed: Bool | None
    ) -> list[tuple[_Scan, ...]]:
        """The `depth` best candidates of each query in each shard, by the codes."""
        bias = None if penalty is None else penalty.bias
        with self._reading(bias):
            wide = np.zeros((len(queries), self._reduction.dim + BIAS_CODES * WIDTH), np.float32)
            wide[:, : self._reduction.dim] = self._reduction.queries(queries)
            if bias is not None:
                wide[:, self._reduction.dim :: WIDTH] = self._level
            lowest = np.float32(0.0 if bias is None else self._lowest)

            def scan(number: int) -> list[_Scan]:
                shard = self._shards[number]
                near, found = shard.search(wide, min(depth, shard.ntotal))
                near -= lowest
                rows = zip(near, found, strict=True)
                first = number * self._shard
                return [_Scan.of(values, places, first, shard.ntotal, allowed) for values, places in rows]

            return list(zip(*shard_pool().map(scan, range(len(self._shards))), strict=True))

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
        faiss = load_faiss()
        codes, centroids = self._stored
        subspaces = self._reduction.codes + BIAS_CODES
        levels = np.zeros((BIAS_CODES, 16, WIDTH), np.float32)
        levels[:, :, 0] = -np.arange(16)
        every = np.concatenate([centroids, levels.ravel()])
        for start in range(0, len(self._full), self._shard):
            own = codes[start // LANES : (start + self._shard) // LANES]
            room = np.zeros((len(own), codes.shape[1] + BIAS_CODES // 2, LANES), np.uint8)
            room[:, : codes.shape[1]] = own
            shard = faiss.IndexPQFastScan(subspaces * WIDTH, subspaces, BITS, faiss.METRIC_INNER_PRODUCT)
            faiss.copy_array_to_vector(every, shard.pq.centroids)
            faiss.copy_array_to_AlignedTable(room.ravel(), shard.codes)
            shard.ntotal = min(self._shard, len(self._full) - start)
            shard.ntotal2 = len(own) * LANES
            shard.is_trained = True
            yield shard

    def _write_bias(self, bias: Float32) -> None:
        faiss = load_faiss()
        self._lowest, high = float(bias.min()), float(np.quantile(bias, OUTLIERS))
        self._level = max(high - self._lowest, 1e-12) / LEVELS
        levels = np.clip(np.rint((bias - self._lowest) / self._level), 0, LEVELS).astype(np.int16)
        parts = [np.clip(levels - 15 * number, 0, 15).astype(np.uint8) for number in range(BIAS_CODES)]
        packed = np.stack([parts[n] | (parts[n + 1] << 4) for n in range(0, BIAS_CODES, 2)], axis=1)
        for number, shard in enumerate(self._shards):
            own = interleave(packed[number * self._shard : (number + 1) * self._shard])
            room = faiss.rev_swig_ptr(shard.codes.get(), shard.codes.size())
            room.reshape(len(own), -1, LANES)[:, -BIAS_CODES // 2 :] = own
        self._bias = bias


def shard_size(items: int) -> int:
    """Of equal shards, as many for each thread, a multiple of `LANES`; few items are one shard.

    >>> shard_size(1_000)
    1024
    """
    threads = (os.cpu_count() or 1) if items > ONE_SHARD else 1
    shards = threads * -(-items // (threads * SHARD))
    return -(-items // (shards * LANES)) * LANES


@dataclass(frozen=True, eq=False)
class _Scan:
    """What the codes of one shard say for one query: places in the group and scores, best first."""

    places: Int64
    near: Float32
    end: float  # no item that is not among them is nearer

    @classmethod
    def of(cls, near: Float32, found: Int64, first: int, items: int, allowed: Bool | None) -> _Scan:
        # -1 stands for an item whose score the 16-bit sums of the kernels cannot tell from the worst.
        known = found >= 0
        places, near = found[known] + first, near[known]
        end = -np.inf if len(places) == items else float(near[-1]) if len(near) else np.inf
        if allowed is not None:
            kept = allowed[places]
            places, near = places[kept], near[kept]
        return cls(places, near, end)


class _Search:
    """The candidates of one query, scored block by block."""

    def __init__(
        self,
        full: FullVectors,
        query: Float32,
        k: int,
        penalty: Penalty | None,
        floor: float,
        scans: Sequence[_Scan],
    ) -> None:
        self.k, self.scans = k, scans
        self._full, self._query, self._penalty, self._floor = full, query, penalty, floor
        self._scores = [np.zeros(0, np.float32) for _ in scans]
        self._excess = 0.0  # of a score over its approximation, at most
        self.complete = False
        """Whether no other item is likely to be among the best."""

    @property
    def candidates(self) -> int:
        return sum(len(scan.places) for scan in self.scans)

    def score(self, shard: int, end: int) -> None:
        """Score the candidates of a shard up to this one."""
        known = self._scores[shard]
        places = self.scans[shard].places[len(known) : end]
        scores = scores_of(self._full, self._query, places)
        if self._penalty is not None:
            scores -= self._penalty.values[places]
        self._scores[shard] = np.concatenate([known, scores])

    def go_on(self, start: int) -> bool:
        """Whether to score more, after a block that began at `start`."""
        scores = np.concatenate(self._scores)
        last = self._floor
        if len(scores) >= self.k:
            last = max(last, float(np.partition(scores, -self.k)[-self.k]))
        own = list(zip(self.scans, self._scores, strict=True))
        differences = np.concatenate([known[start:] - scan.near[start : len(known)] for scan, known in own])
        left = [len(known) < len(scan.near) for scan, known in own]
        mean, deviation = _mean_and_deviation(differences)
        expected = 0.0
        for (scan, known), more in zip(own, left, strict=True):
            near = float(scan.near[len(known)]) if more else scan.end
            if near > -np.inf:
                expected += max(len(known), 1) * _upper_tail((last - near - mean) / max(deviation, 1e-12))
        self.complete = expected <= MISSED * self.k
        self._excess = mean + SURE * deviation
        return not self.complete and any(left)

    def rest(self) -> Rest:
        """Items that are not candidates score no more than their approximations may be off."""
        places = np.concatenate([scan.places for scan in self.scans])
        return Rest(places, max(scan.end for scan in self.scans) + self._excess)

    def best(self) -> Int64:
        """The places of the best, and some to spare."""
        scores = np.concatenate(self._scores)
        places = np.concatenate(
            [scan.places[: len(known)] for scan, known in zip(self.scans, self._scores, strict=True)]
        )
        return np.asarray(places[np.argsort(-scores, kind="stable")[: self.k + SPARE]])


def _finish(searches: Sequence[_Search]) -> None:
    """Score as many candidates as the searches need, the shards in parallel."""
    start, end = 0, FIRST + max(search.k for search in searches)
    waiting = list(searches)
    while waiting:

        def score(shard: int) -> None:
            for search in waiting:  # noqa: B023
                search.score(shard, end)  # noqa: B023

        list(shard_pool().map(score, range(len(waiting[0].scans))))
        waiting = [search for search in waiting if search.go_on(start)]
        start, end = end, 2 * end


def _mean_and_deviation(differences: Float32) -> tuple[float, float]:
    """Of a normal distribution whose upper tail is as long as that of the differences.

    >>> _mean_and_deviation(np.array([-1.0, 1.0], np.float32))
    (0.0, 1.0)
    >>> _mean_and_deviation(np.array([0.0] * 99 + [1.0], np.float32))[1] > 0.3
    True
    """
    if len(differences) < 2:
        return (float(differences[0]) if len(differences) else 0.0), 0.0
    mean, largest = float(differences.mean()), float(differences.max())
    return mean, max(float(differences.std()), (largest - mean) / math.sqrt(2 * math.log(len(differences))))


def _upper_tail(deviations: float) -> float:
    return 0.5 * math.erfc(deviations / math.sqrt(2))


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
def shard_pool() -> ThreadPoolExecutor:
    """Threads that encode and scan, one for each core; those of FAISS would wait for each other."""
    return ThreadPoolExecutor(os.cpu_count(), "wordreel-pq", lambda: load_faiss().omp_set_num_threads(1))
