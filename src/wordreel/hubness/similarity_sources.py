"""Similarities of embeddings, computed block by block as a method reads them and never stored.

`product` is for single vectors, `mixtures` for mixtures of experts (see `models.similarity`). Both can be
read again, so Sinkhorn can be fitted too. Memory: one batch of 16 MB beside the embeddings.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wordreel.errors import HubnessError
from wordreel.hubness.blocks import SimilaritySource
from wordreel.models.similarity import divide, flatten_queries
from wordreel.types import Array, Bool, Float32


@dataclass(frozen=True)
class MixtureSource:
    """Rows of the mixture similarity; `items` is flat, `[n, e · d]`, with zeros where not available."""

    queries: Float32  # [m, e, d]
    weights: Float32  # [m, e]
    items: Float32
    available: Float32  # [n, e]

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.queries), len(self.items))

    def read(self, start: int, stop: int) -> Array:
        weights = self.weights[start:stop]
        return divide(
            flatten_queries(self.queries[start:stop], weights) @ self.items.T, weights @ self.available.T
        )


def product(queries: Array, items: Array) -> SimilaritySource:
    """Return a source of inner products, computed block by block as a method reads them.

    Args:
        queries: `[m, d]`; unit vectors for cosines.
        items: `[n, d]`.

    Returns:
        A source of `[m, n]` similarities, for `Method.fit` and `fit_many`.

    Raises:
        HubnessError: The shapes do not fit.

    >>> source = product(np.eye(3)[:2], np.eye(3))
    >>> source.shape, source.read(1, 2).tolist()
    ((2, 3), [[0.0, 1.0, 0.0]])
    """
    queries, items = np.asarray(queries), np.asarray(items)
    if queries.ndim != 2 or items.ndim != 2 or queries.shape[1] != items.shape[1]:
        raise HubnessError(
            f"embeddings are matrices [rows, dim] of one dim, not {queries.shape} and {items.shape}"
        )
    one = np.ones((1, 1), np.float32)
    weights, available = np.broadcast_to(one, (len(queries), 1)), np.broadcast_to(one, (len(items), 1))
    return MixtureSource(queries.astype(np.float32)[:, None], weights, items.astype(np.float32), available)


def mixtures(queries: Float32, weights: Float32, items: Float32, available: Bool) -> SimilaritySource:
    """Return a source of mixture similarities.

    Per expert an inner product, averaged over the experts that an item has with the query's weights.

    Args:
        queries: Query embeddings of each expert, `[m, e, d]`.
        weights: The weight of each expert for a query, `[m, e]`, not negative.
        items: Item embeddings of each expert, `[n, e, d]`.
        available: Which experts an item has, `[n, e]`.

    Returns:
        A source of `[m, n]` similarities, for `Method.fit` and `fit_many`.

    Raises:
        HubnessError: The shapes do not fit, or a weight is negative or not finite.

    >>> queries = np.ones((1, 2, 1), np.float32)
    >>> weights = np.array([[0.25, 0.75]], np.float32)
    >>> items = np.array([[[0.4], [0.8]], [[0.4], [0.0]]], np.float32)
    >>> source = mixtures(queries, weights, items, np.array([[True, True], [True, False]]))
    >>> source.read(0, 1).round(4).tolist() == [[np.float32(0.7), np.float32(0.4)]]
    True
    """
    if queries.ndim != 3 or items.ndim != 3 or queries.shape[1:] != items.shape[1:]:
        raise HubnessError(
            f"expert embeddings are [rows, experts, dim], not {queries.shape} and {items.shape}"
        )
    if weights.shape != queries.shape[:2] or available.shape != items.shape[:2]:
        raise HubnessError(
            f"weights {weights.shape} and availability {available.shape} do not fit queries {queries.shape} "
            f"and items {items.shape}"
        )
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise HubnessError("mixture weights must be finite and not negative")
    masked = np.where(available[:, :, None], items, np.float32(0)).reshape(len(items), -1)
    return MixtureSource(
        queries, weights, masked.astype(np.float32, copy=False), available.astype(np.float32)
    )
