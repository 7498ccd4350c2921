"""Bring the rows of a vector server to what a library has embedded; only differences travel.

Each batch is written whole or not at all and a clip's id names one vector for ever, so a synchronisation
that a crash cut short is finished by the same call. Clips that another process added since are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import sha256

import numpy as np

from wordreel.index.base import availability_groups
from wordreel.index.vector_server import SLOTS, Marker, NewRows, VectorServer, digests_of
from wordreel.progress import Progress, ProgressCallback
from wordreel.types import Bool, Float32, Int64

BATCH_BYTES = 4 * 2**20  # of vectors in one write


@dataclass(frozen=True, eq=False)
class Embeddings:
    """The rows of an index: `clips [n]`, `vectors [n, experts, dim]` and `available [n, experts]`."""

    clips: Int64
    vectors: Float32
    available: Bool

    def batches(self, chosen: Int64) -> Iterator[Int64]:
        """Yield the chosen rows in batches of one pattern each."""
        size = max(1, BATCH_BYTES // max(1, 4 * self.vectors.shape[1] * self.vectors.shape[2]))
        for _, members in availability_groups(self.available[chosen]):
            rows = chosen[members]
            for start in range(0, len(rows), size):
                yield rows[start : start + size]

    def new_rows(self, rows: Int64, biases: Float32) -> NewRows:
        """Return rows of one pattern as the server stores them."""
        pattern = self.available[rows[0]]
        vectors = np.ascontiguousarray(np.asarray(self.vectors[rows])[:, pattern]).reshape(len(rows), -1)
        return NewRows(pattern, self.clips[rows], digests_of(vectors), biases, vectors)


@dataclass(frozen=True)
class SyncReport:
    """What a synchronisation changed."""

    added: int = 0
    repaired: int = 0
    deleted: int = 0
    rows: int = 0


def synchronise(
    server: VectorServer,
    embeddings: Embeddings,
    in_library: Int64,
    on_progress: ProgressCallback | None = None,
    deep: bool = False,
) -> tuple[SyncReport, Float32]:
    """Add what is missing and delete what left the library.

    Args:
        server: The table.
        embeddings: What should be there.
        in_library: The ids of all clips of the library now; rows of others are deleted.
        on_progress: Called after each batch.
        deep: Compare the digests of all vectors too, and write those again that differ.

    Returns:
        What changed, and the biases `[n, SLOTS]` that the server knows of the embeddings' rows.
    """
    with server.lock():
        server.prepare()
        marker = server.read_marker() or Marker.new()
        alive = np.flatnonzero(np.isin(embeddings.clips, in_library))
        wanted = embeddings.clips[alive]
        have = server.rows()
        biases = _aligned(have.biases, have.clips, embeddings.clips)
        missing = alive[~np.isin(wanted, have.clips)]
        damaged = _damaged(embeddings, alive, have.clips, have.digests) if deep else missing[:0]
        gone = have.clips[~np.isin(have.clips, in_library)]
        token = clips_digest(wanted)
        if len(missing) or len(damaged) or len(gone) or not marker.complete:
            server.write_marker(replace(marker, complete=False))
            todo = np.concatenate([missing, damaged])
            done = 0
            server.begin(len(todo))
            for rows in embeddings.batches(todo):
                server.put(embeddings.new_rows(rows, biases[rows]))
                done += len(rows)
                if on_progress:
                    on_progress(Progress("sending clips to the index", done, len(todo)))
            if len(gone):
                server.delete(gone)
            server.finish()
        if not marker.complete or marker.clips != token or len(missing) or len(damaged) or len(gone):
            server.write_marker(replace(marker, complete=True, clips=token))
        return SyncReport(len(missing), len(damaged), len(gone), len(wanted)), biases


def clips_digest(clips: Int64) -> str:
    """Return a digest of a set of clip ids, whatever their order."""
    return sha256(np.sort(clips).astype("<i8").tobytes()).hexdigest()[:32]


def read_biases(server: VectorServer, clips: Int64) -> Float32:
    """Return the biases `[n, SLOTS]` that the server has for these clips, NaN where it has none."""
    have = server.rows()
    return _aligned(have.biases, have.clips, clips)


def _aligned(biases: Float32, clips: Int64, wanted: Int64) -> Float32:
    """Return the biases of the wanted clips in their order, NaN for those that are not there."""
    out = np.full((len(wanted), SLOTS), np.nan, np.float32)
    order = np.argsort(clips)
    at = np.searchsorted(clips, wanted, sorter=order)
    at = order[np.minimum(at, len(clips) - 1)] if len(clips) else at
    if len(clips):
        there = clips[at] == wanted
        out[there] = biases[at[there]]
    return out


def _damaged(embeddings: Embeddings, alive: Int64, clips: Int64, digests: Int64) -> Int64:
    known = dict(zip(clips.tolist(), digests.tolist(), strict=True))
    wrong = []
    for rows in embeddings.batches(alive):
        new = embeddings.new_rows(rows, np.zeros((len(rows), SLOTS), np.float32))
        for row, clip, digest in zip(rows.tolist(), new.clips.tolist(), new.digests.tolist(), strict=True):
            if known.get(clip, digest) != digest:
                wrong.append(row)
    return np.array(wrong, np.int64)
