"""Exact search: every item is scored, block by block, so the vectors may lie in a memory-mapped file.

The score of an item is the mixture similarity minus the item's bias (0 unless a bank gives one). Equal
scores keep the order of the items. Cost per query: one pass over the vectors, O(items · experts · dim).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wordreel.index.top import top_ids
from wordreel.models.similarity import divide, flatten_queries
from wordreel.types import Bool, Float32

BLOCK = 16_384


@dataclass(frozen=True)
class Found:
    """The best items of each query, best first. Rows past the end of a short gallery are -1, scores -inf."""

    rows: NDArray[np.int64]  # [queries, k]
    scores: Float32  # [queries, k]


class ExactIndex:
    """Items `vectors [n, experts, dim]` (zeros where not available) and `available [n, experts]`."""

    def __init__(self, vectors: Float32, available: Bool, bias: Float32 | None = None) -> None:
        if vectors.ndim != 3 or available.shape != vectors.shape[:2]:
            raise ValueError(
                f"vectors {vectors.shape} and availability {available.shape} do not fit together"
            )
        if bias is not None and bias.shape != (len(vectors),):
            raise ValueError(f"a bias of shape {bias.shape} does not fit {len(vectors)} items")
        self._vectors = vectors.reshape(len(vectors), vectors.shape[1] * vectors.shape[2])
        self._available = available
        self._bias = bias

    def __len__(self) -> int:
        return len(self._vectors)

    def scores(self, vectors: Float32, weights: Float32, rows: slice | NDArray[np.int64]) -> Float32:
        """Scores `[queries, len(rows)]` of some items."""
        top = flatten_queries(vectors, weights) @ np.asarray(self._vectors[rows]).T
        scores = divide(top, weights @ self._available[rows].T.astype(np.float32))
        return scores if self._bias is None else scores - self._bias[rows]

    def search(self, vectors: Float32, weights: Float32, k: int, allowed: Bool | None = None) -> Found:
        """The `k` best items for each of `vectors [q, experts, dim]` with `weights [q, experts]`.

        `allowed [n]` leaves items out before ranking, so a filter never costs results.

        >>> items = np.eye(3, dtype=np.float32)[:, None, :]
        >>> index = ExactIndex(items, np.ones((3, 1), bool))
        >>> index.search(items[1:2], np.ones((1, 1), np.float32), k=2).rows
        array([[1, 0]])
        """
        queries = len(vectors)
        rows = np.full((queries, k), -1, np.int64)
        best = np.full((queries, k), -np.inf, np.float32)
        for start in range(0, len(self), BLOCK):
            block = slice(start, min(start + BLOCK, len(self)))
            if allowed is not None and not allowed[block].any():
                continue
            scores = self.scores(vectors, weights, block)
            if allowed is not None:
                scores = np.where(allowed[block], scores, np.float32(-np.inf))
            rows, best = _merge(rows, best, scores, start, k)
        return Found(np.where(np.isneginf(best), -1, rows), best)


def _merge(
    rows: NDArray[np.int64], best: Float32, scores: Float32, start: int, k: int
) -> tuple[NDArray[np.int64], Float32]:
    """Fold a block of scores into the running best; earlier items win ties because they come first."""
    head = top_ids(scores, k)
    every = np.concatenate([best, np.take_along_axis(scores, head, axis=1)], axis=1)
    order = np.argsort(-every, axis=1, kind="stable")[:, :k]
    kept = np.take_along_axis(np.concatenate([rows, start + head], axis=1), order, axis=1)
    return kept, np.take_along_axis(every, order, axis=1)
