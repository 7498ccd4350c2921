"""`ServerIndex`: search by a PostgreSQL or Milvus server, over the embeddings of this library.

The server proposes the best clips of every group of expert availability (`VectorServer.search`); the few
that it returns are scored again from the embeddings here, so scores and order are those of `ExactIndex`. A
filter travels as ranges of clip ids, a normalisation as a bias per clip in one of the extra dimensions of
the stored vectors.

Before the first search, and whenever the server's marker is not the one expected, the rows are synchronised:
an index that cannot be completed raises `IndexServerError`, and never answers from a part of the library.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wordreel.errors import IndexServerError
from wordreel.index.base import Best, Index, Rest, availability_groups, group_queries, merge_best
from wordreel.index.exact import ExactIndex
from wordreel.index.server_sync import Embeddings, SyncReport, read_biases, synchronise
from wordreel.index.vector_server import SLOTS, GroupSearch, Marker, VectorServer
from wordreel.progress import ProgressCallback
from wordreel.types import Bool, Float32, Int64
from wordreel.util.lru_cache import LRUCache

SPARE = 8  # more than asked for, as the server rounds differently from here
SAME_BIAS = 2e-6  # biases that differ by less, apart from a constant, are the same
FEW = 2_000  # items left by a filter; they are scored here sooner than a server is asked
ATTEMPTS = 4


@dataclass(frozen=True, eq=False)
class _Slot:
    """Where the server has a bias, and under which stamp."""

    bias: Float32
    number: int
    stamp: str


class ServerIndex(Index):
    """Items searched by a vector server. `in_library` returns the ids of all clips of the library now."""

    def __init__(
        self,
        server: VectorServer,
        clips: Int64,
        vectors: Float32,
        available: Bool,
        in_library: Callable[[], Int64],
        on_progress: ProgressCallback | None = None,
    ) -> None:
        self.server = server
        self.name = server.name  # type: ignore[misc]
        self._embeddings = Embeddings(clips, vectors, available)
        self._local = ExactIndex(vectors, available)
        self._in_library = in_library
        self._groups = availability_groups(available)
        self._order = np.argsort(clips)
        self._lock = threading.RLock()
        self._slots: LRUCache[int, _Slot] = LRUCache(2 * SLOTS)
        self._biases: Float32 = np.zeros((0, SLOTS), np.float32)
        self._epoch = ""
        self.first_report = self.synchronise(on_progress)

    def __str__(self) -> str:
        return f"{self.name}, {'exactly' if self.exact else 'approximately'}"

    @property
    def exact(self) -> bool:
        return self.server.exact

    def __len__(self) -> int:
        return len(self._local)

    def synchronise(self, on_progress: ProgressCallback | None = None, deep: bool = False) -> SyncReport:
        """Bring the server to what this index holds; with `deep`, also compare the vectors that it has."""
        with self._lock:
            report, biases = synchronise(self.server, self._embeddings, self._in_library(), on_progress, deep)
            marker = self._marker()
            self._biases, self._epoch = biases, marker.epoch
            return report

    def scores(self, vectors: Float32, weights: Float32, rows: slice | NDArray[np.int64]) -> Float32:
        return self._local.scores(vectors, weights, rows)

    def best(
        self,
        vectors: Float32,
        weights: Float32,
        k: int,
        allowed: Bool | None = None,
        bias: Float32 | None = None,
    ) -> Best:
        if allowed is not None and np.count_nonzero(allowed) <= FEW:
            return self._ranked(vectors, weights, k, np.flatnonzero(allowed), bias)
        if k + SPARE > self.server.max_k:  # deeper than the server answers
            return self._local.best(vectors, weights, k, allowed, bias)
        rows = np.full((len(vectors), k), -1, np.int64)
        scores = np.full((len(vectors), k), -np.inf, np.float32)
        for query in range(len(vectors)):
            some = slice(query, query + 1)
            one = self._best(vectors[some], weights[some], k, allowed, bias)
            rows[query], scores[query] = one.rows[0], one.scores[0]
        # A server that proposes too few says nothing of the others.
        least = np.where(np.isneginf(scores[:, -1]), np.inf, scores[:, -1]).tolist()
        return Best(rows, scores, [Rest(own, most) for own, most in zip(rows, least, strict=True)])

    def _best(
        self, vectors: Float32, weights: Float32, k: int, allowed: Bool | None, bias: Float32 | None
    ) -> Best:
        """Return the best `k` of the clips that the server proposes for one query."""
        wanted = k + SPARE
        for _ in range(ATTEMPTS):
            slot = None if bias is None else self._slot(bias)
            found, marker = self.server.search(self._requests(vectors, weights, wanted, allowed, slot))
            if marker is None or marker.epoch != self._epoch:
                self.synchronise()
                continue
            if slot is not None and marker.stamps[slot.number] != slot.stamp:
                self._forget_slots()
                continue
            rows = [self._rows_of(clips) for clips in found]
            strangers = max((len(a) - len(b) for a, b in zip(found, rows, strict=True)), default=0)
            if strangers and wanted < self.server.max_k:
                wanted = min(wanted + 2 * strangers, self.server.max_k)
                continue
            return self._ranked(vectors, weights, k, np.concatenate([np.zeros(0, np.int64), *rows]), bias)
        raise IndexServerError("the index on the server keeps changing; try again when nobody writes to it")

    def _requests(
        self, vectors: Float32, weights: Float32, k: int, allowed: Bool | None, slot: _Slot | None
    ) -> list[GroupSearch]:
        corner = np.zeros(SLOTS, np.float32)
        if slot is not None:
            corner[slot.number] = 1
        requests = []
        for pattern, rows in self._groups:
            inside = np.ones(len(rows), bool) if allowed is None else allowed[rows]
            if inside.any():
                ranges = id_ranges(self._embeddings.clips[rows], inside)
                whole = group_queries(vectors, weights, pattern).reshape(vectors.shape)[0]
                query = np.concatenate([whole[pattern].ravel(), corner]).astype(np.float32)
                requests.append(GroupSearch(pattern, query, ranges, float(inside.mean()), k))
        return requests

    def _ranked(self, vectors: Float32, weights: Float32, k: int, rows: Int64, bias: Float32 | None) -> Best:
        """Return the best `k` of some rows, scored from the embeddings here."""
        scores = self._local.scores(vectors, weights, rows)
        if bias is not None:
            scores = scores - bias[rows]
        return merge_best([Best(np.broadcast_to(rows, scores.shape), scores)], k)

    def _rows_of(self, clips: Int64) -> Int64:
        """Return the rows of the clips that this index knows."""
        mine = self._embeddings.clips
        at = np.searchsorted(mine, clips, sorter=self._order)
        if not len(mine):
            return np.zeros(0, np.int64)
        rows = self._order[np.minimum(at, len(mine) - 1)]
        return np.asarray(rows[mine[rows] == clips], np.int64)

    # Biases

    def _slot(self, bias: Float32) -> _Slot:
        """Return the slot that holds a bias; write it first if none does."""
        known = self._slots.get(id(bias))
        if known is not None and known.bias is bias:
            return known
        with self._lock:
            slot = self._write_bias(bias)
            self._slots.put(id(bias), slot)
            return slot

    def _write_bias(self, bias: Float32) -> _Slot:
        alive = np.flatnonzero(np.isin(self._embeddings.clips, self._in_library()))
        with self.server.lock():
            marker = self._marker()
            self._biases = read_biases(self.server, self._embeddings.clips)  # others may have written since
            for number in range(SLOTS):
                stored = self._biases[alive, number]
                known = ~np.isnan(stored)
                if not marker.stamps[number] or not known.any():
                    continue
                shift = float(np.median(stored[known] - bias[alive][known]))
                if (np.abs(stored[known] - bias[alive][known] - shift) <= SAME_BIAS).all():
                    self._put_bias(alive[~known], number, bias + np.float32(shift))  # clips that are new
                    return _Slot(bias, number, marker.stamps[number])
            number = marker.oldest_slot()
            marker = marker.with_stamp(number)
            self.server.write_marker(marker)
            self._put_bias(alive, number, bias)
            return _Slot(bias, number, marker.stamps[number])

    def _put_bias(self, rows: Int64, number: int, bias: Float32) -> None:
        if not len(rows):
            return
        self.server.begin(len(rows))
        for some in self._embeddings.batches(rows):
            changed = self._biases[some].copy()
            changed[:, number] = bias[some]
            self.server.put(self._embeddings.new_rows(some, changed))
            self._biases[some] = changed
        self.server.finish()

    def _forget_slots(self) -> None:
        """Another process has changed the biases: read them again."""
        with self._lock:
            self._slots = LRUCache(2 * SLOTS)
            self.synchronise()

    def _marker(self) -> Marker:
        marker = self.server.read_marker()
        if marker is None:
            raise IndexServerError("the index on the server was deleted while it was in use")
        return marker


def id_ranges(clips: Int64, allowed: Bool) -> Int64:
    """Return ranges `[r, 2]` of ids, ends included, that hold all allowed clips and none of the others.

    >>> id_ranges(np.array([3, 4, 9, 7]), np.array([True, True, True, False])).tolist()
    [[3, 4], [9, 9]]
    """
    order = np.argsort(clips, kind="stable")
    ids = clips[order]
    steps = np.diff(allowed[order].astype(np.int8), prepend=0, append=0)
    first, last = np.flatnonzero(steps == 1), np.flatnonzero(steps == -1) - 1
    return np.stack([ids[first], ids[last]], axis=1).astype(np.int64).reshape(-1, 2)
