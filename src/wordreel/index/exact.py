"""Exact search: every item is scored, block by block, so the vectors may lie in a memory-mapped file.

The score of an item is the mixture similarity, less the item's bias where a correction is given. Equal
scores keep the order of the items. Cost per query: one pass over the vectors, O(items · experts · dim),
without the experts that no item has; a correction adds one subtraction per score, a gated one a second pass
for the queries that it holds for.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from wordreel.index.base import (
    Best,
    Correction,
    Index,
    IndexResult,
    check_correction,
    merge_best,
    search_corrected,
)
from wordreel.index.topk import rank_nan_last, topk_ids
from wordreel.models.similarity import divide, flatten_queries
from wordreel.types import Bool, Float32

BLOCK = 16_384
GATHERED = 256  # rows, from here and there, copied at once


class ExactIndex(Index):
    """Items `vectors [n, experts, dim]` (zeros where not available) and `available [n, experts]`."""

    name = "exact"

    def __init__(self, vectors: Float32, available: Bool) -> None:
        if vectors.ndim != 3 or available.shape != vectors.shape[:2]:
            raise ValueError(
                f"vectors {vectors.shape} and availability {available.shape} do not fit together"
            )
        self._vectors = vectors.reshape(len(vectors), vectors.shape[1] * vectors.shape[2])
        self._available = available

    @cached_property
    def _used(self) -> list[slice]:
        """The columns of neighbouring experts that some item has; all others hold zeros."""
        used = np.concatenate([[False], self._available.any(axis=0), [False]])
        dim = self._vectors.shape[1] // max(1, self._available.shape[1])
        edges = np.flatnonzero(np.diff(used)) * dim
        return [slice(int(low), int(high)) for low, high in edges.reshape(-1, 2)]

    @property
    def exact(self) -> bool:
        return True

    def __len__(self) -> int:
        return len(self._vectors)

    def scores(self, vectors: Float32, weights: Float32, rows: slice | NDArray[np.int64]) -> Float32:
        return self._plain(flatten_queries(vectors, weights), weights, rows)

    def best(
        self,
        vectors: Float32,
        weights: Float32,
        k: int,
        allowed: Bool | None = None,
        bias: Float32 | None = None,
    ) -> Best:
        """Find the best items as `Index.best` does, in one pass.

        >>> items = np.eye(3, dtype=np.float32)[:, None, :]
        >>> index = ExactIndex(items, np.ones((3, 1), bool))
        >>> index.best(items[1:2], np.ones((1, 1), np.float32), k=2).rows
        array([[1, 0]])
        """
        flat = flatten_queries(vectors, weights)
        best = merge_best([Best(np.zeros((len(flat), 0), np.int64), np.zeros((len(flat), 0), np.float32))], k)
        for start in range(0, len(self), BLOCK):
            block = slice(start, min(start + BLOCK, len(self)))
            if allowed is not None and not allowed[block].any():
                continue
            scores = self._plain(flat, weights, block)
            if allowed is not None:
                scores[:, ~allowed[block]] = -np.inf
            best = merge_best([best, _best_of(scores if bias is None else scores - bias[block], k, start)], k)
        return best

    def _plain(self, flat: Float32, weights: Float32, rows: slice | NDArray[np.int64]) -> Float32:
        if isinstance(rows, slice):  # a view: what is not multiplied is not read either
            top = np.zeros((len(flat), len(range(*rows.indices(len(self))))), np.float32)
            for some in self._used:
                top += flat[:, some] @ np.asarray(self._vectors)[rows, some].T
        else:
            top = self._products(flat, rows)
        return rank_nan_last(divide(top, weights @ self._available[rows].T.astype(np.float32)))

    def _products(self, flat: Float32, rows: NDArray[np.int64]) -> Float32:
        """Compute `[queries, rows]` some rows at a time: a copy of all would not fit into any cache."""
        top = np.empty((len(flat), len(rows)), np.float32)
        for start in range(0, len(rows), GATHERED):
            some = slice(start, start + GATHERED)
            top[:, some] = flat @ np.asarray(self._vectors[rows[some]]).T
        return top


def search_scores(
    scores: Float32, k: int, allowed: Bool | None = None, correction: Correction | None = None
) -> IndexResult:
    """Return what `ExactIndex.search` does from the plain `scores [queries, n]` of all its items.

    >>> search_scores(np.array([[0.2, 0.9, 0.2]], np.float32), k=2).rows
    array([[1, 0]])
    """
    check_correction(correction, scores.shape[1])
    if allowed is not None:
        scores = np.where(allowed, scores, np.float32(-np.inf))

    def best(some: slice | Bool, bias: Float32 | None) -> Best:
        return merge_best([_best_of(scores[some] if bias is None else scores[some] - bias, k)], k)

    return search_corrected(best, len(scores), correction)


def _best_of(scores: Float32, k: int, start: int = 0) -> Best:
    """Return the at most `k` best of the items from `start` on."""
    head = topk_ids(scores, k)
    return Best(start + head, np.take_along_axis(scores, head, axis=1))
