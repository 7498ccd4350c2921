"""The embeddings of a bank's queries by one model, in the library's cache.

Rows of removed queries stay until the next write: taking a query out of a fitted state needs its similarities
once more.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordreel.catalogue.banks import Bank
from wordreel.catalogue.store import LibraryStore
from wordreel.errors import NOT_WRITABLE
from wordreel.models.base import Model
from wordreel.progress import Progress, ProgressCallback
from wordreel.runtime.mapped_arrays import map_safetensors
from wordreel.types import Float32, Int64, QueryEmbedding
from wordreel.util.atomic import atomic_write, make_dir
from wordreel.util.checksum import array_checksum

FOLDER = "banks"
BATCH = 256
CHECKSUM = "crc32"  # in the header


@dataclass(frozen=True, eq=False)
class BankEmbeddings:
    """`vectors [m, experts, dim]` and `weights [m, experts]` of the queries `ids [m]`."""

    ids: Int64
    vectors: Float32
    weights: Float32

    def of(self, ids: Int64) -> BankEmbeddings:
        """Return the embeddings of these queries, in this order; raise KeyError if one is missing."""
        row_of = {int(number): row for row, number in enumerate(self.ids)}
        rows = np.array([row_of[int(number)] for number in ids], np.int64)
        return BankEmbeddings(np.asarray(ids, np.int64), self.vectors[rows], self.weights[rows])


def bank_cache_dir(store: LibraryStore, model: Model, bank: str) -> Path:
    """Return the cache folder of a bank under a model."""
    return store.cache / FOLDER / model.fingerprint / hashlib.sha256(bank.encode()).hexdigest()[:16]


def embed_queries(
    store: LibraryStore, model: Model, bank: Bank, on_progress: ProgressCallback | None = None
) -> BankEmbeddings:
    """Return the embeddings of all queries of a bank (and perhaps of removed ones); encode only new ones."""
    path = bank_cache_dir(store, model, bank.name) / "queries.safetensors"
    known = _read(path, model)
    there = set(known.ids.tolist())
    new = [number for number, query in enumerate(bank.ids) if query not in there]
    if not new:
        return known
    queries: list[QueryEmbedding] = []
    for start in range(0, len(new), BATCH):
        queries += model.encode([bank.texts[number] for number in new[start : start + BATCH]])
        if on_progress:
            on_progress(Progress("embedding queries", len(queries), len(new)))
    alive = np.isin(known.ids, np.array(bank.ids))
    vectors = BankEmbeddings(
        np.concatenate([known.ids[alive], np.array([bank.ids[number] for number in new], np.int64)]),
        np.concatenate([known.vectors[alive], np.stack([query.vectors for query in queries])]),
        np.concatenate([known.weights[alive], np.stack([query.weights for query in queries])]),
    )
    with suppress(*NOT_WRITABLE), store.writing():
        _write(path, vectors)
    return vectors


def _read(path: Path, model: Model) -> BankEmbeddings:
    shape = (len(model.experts), model.dim)
    empty = BankEmbeddings(
        np.zeros(0, np.int64), np.zeros((0, *shape), np.float32), np.zeros((0, shape[0]), np.float32)
    )
    if not path.exists():
        return empty
    try:
        about, arrays = map_safetensors(path)
        if about[CHECKSUM] != str(array_checksum(arrays)):
            return empty
        vectors = BankEmbeddings(arrays["ids"], arrays["vectors"], arrays["weights"])
    except (OSError, ValueError, KeyError, TypeError):
        return empty  # a cache: encode again
    rows = len(vectors.ids)
    fits = vectors.vectors.shape == (rows, *shape) and vectors.weights.shape == (rows, shape[0])
    return vectors if fits and np.isfinite(vectors.vectors).all() else empty


def _write(path: Path, vectors: BankEmbeddings) -> None:
    from safetensors.numpy import save

    arrays: dict[str, NDArray[Any]] = {
        "ids": vectors.ids,
        "vectors": vectors.vectors,
        "weights": vectors.weights,
    }
    make_dir(path.parent)
    atomic_write(path, save(arrays, {CHECKSUM: str(array_checksum(arrays))}))
