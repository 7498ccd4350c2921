"""Fit a method from embeddings: similarities are computed block by block and never stored.

`product` is for single vectors (one matrix product per block), `mixtures` for mixtures of experts (see
`models.similarity`). Both can be read again, so Sinkhorn can be fitted too. Memory: one batch of
128 MB at most beside the embeddings (see `accumulate`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wordreel.errors import HubnessError
from wordreel.hubness.blocks import SimilaritySource
from wordreel.hubness.method import Method
from wordreel.hubness.state import State
from wordreel.models.similarity import divide, flatten_queries
from wordreel.types import Array, Bool, Float32


@dataclass(frozen=True)
class ProductSource:
    """Rows of `queries [m, d] · items [n, d]ᵀ`."""

    queries: Array
    items: Array

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.queries), len(self.items))

    def read(self, start: int, stop: int) -> Array:
        return np.asarray(_floats(self.queries[start:stop]) @ self.items.T)

    def read_into(self, start: int, stop: int, out: Array) -> Array:
        queries = _floats(self.queries[start:stop])
        if np.result_type(queries, self.items) != out.dtype:
            return np.asarray(queries @ self.items.T)
        return np.matmul(queries, self.items.T, out=out[: stop - start])


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

    def read_into(self, start: int, stop: int, out: Array) -> Array:
        weights = self.weights[start:stop]
        queries = flatten_queries(self.queries[start:stop], weights)
        if np.result_type(queries, weights, self.items) != out.dtype:
            return self.read(start, stop)
        top = np.matmul(queries, self.items.T, out=out[: stop - start])
        bottom = weights @ self.available.T
        np.divide(top, bottom, out=top, where=bottom > 0)
        np.copyto(top, 0, where=bottom <= 0)
        return top


def product(queries: Array, items: Array) -> SimilaritySource:
    """A source of inner products, computed block by block as a method reads them.

    Args:
        queries: `[m, d]`; unit vectors for cosines.
        items: `[n, d]`.

    Returns:
        A source of `[m, n]` similarities, for `Method.fit`, `fit_many` and `corrected_ranks`.

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
    return ProductSource(queries, _floats(items))


def mixtures(queries: Float32, weights: Float32, items: Float32, available: Bool) -> SimilaritySource:
    """A source of mixture similarities: per expert an inner product, averaged over the experts that an item
    has with the query's weights.

    Args:
        queries: Query embeddings of each expert, `[m, e, d]`.
        weights: The weight of each expert for a query, `[m, e]`, not negative.
        items: Item embeddings of each expert, `[n, e, d]`.
        available: Which experts an item has, `[n, e]`.

    Returns:
        A source of `[m, n]` similarities, for `Method.fit`, `fit_many` and `corrected_ranks`.

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


def fit_embeddings(
    method: Method,
    bank: Array,
    gallery: Array,
    extra: Array | None = None,
    *,
    threads: int | None = None,
    device: str = "cpu",
) -> State:
    """Fit on embeddings, without storing the similarity matrix.

    Args:
        method: What to fit (`make_method`).
        bank: Embeddings of the bank queries, `[m, d]`.
        gallery: Embeddings of the gallery items, `[n, d]`.
        extra: Embeddings of the gallery bank, `[g, d]`, for the methods with two banks.
        threads: CPU threads; all cores by default.
        device: `cpu`, `cuda`, or `auto` for a GPU where there is one.

    Returns:
        The fitted state over the `n` gallery items.

    Raises:
        HubnessError: The shapes do not fit, or a similarity is not finite.

    >>> from wordreel.hubness.inverted_softmax import InvertedSoftmax
    >>> rng = np.random.default_rng(0)
    >>> bank, gallery = rng.normal(size=(20, 8)), rng.normal(size=(5, 8))
    >>> state = fit_embeddings(InvertedSoftmax(beta=1.0), bank, gallery)
    >>> np.allclose(state.bias(), InvertedSoftmax(beta=1.0).fit(bank @ gallery.T).bias())
    True
    """
    second = None
    if extra is not None:
        # Sinkhorn compares the gallery bank with the queries, the others with the gallery.
        second = product(extra, gallery) if method.streaming else product(bank, extra)
    return method.fit(product(bank, gallery), second, threads=threads, device=device)


def fit_mixtures(
    method: Method,
    bank: Float32,
    weights: Float32,
    gallery: Float32,
    available: Bool,
    *,
    threads: int | None = None,
    device: str = "cpu",
) -> State:
    """Fit on embeddings of a mixture of experts, without storing the similarity matrix.

    Args:
        method: What to fit (`make_method`); one with a single bank.
        bank: Embeddings of the bank queries, `[m, e, d]`.
        weights: The weight of each expert for a bank query, `[m, e]`, not negative.
        gallery: Embeddings of the gallery items, `[n, e, d]`.
        available: Which experts a gallery item has, `[n, e]`.
        threads: CPU threads; all cores by default.
        device: `cpu`, `cuda`, or `auto` for a GPU where there is one.

    Returns:
        The fitted state over the `n` gallery items.

    Raises:
        HubnessError: The shapes do not fit, a weight is negative, or a similarity is not finite.

    >>> from wordreel.hubness.inverted_softmax import InvertedSoftmax
    >>> rng = np.random.default_rng(0)
    >>> bank, gallery = rng.normal(size=(20, 2, 8)).astype("f4"), rng.normal(size=(5, 2, 8)).astype("f4")
    >>> weights, available = np.full((20, 2), 0.5, np.float32), np.ones((5, 2), bool)
    >>> fit_mixtures(InvertedSoftmax(beta=1.0), bank, weights, gallery, available).bias().shape
    (5,)
    """
    return method.fit(mixtures(bank, weights, gallery, available), threads=threads, device=device)


def _floats(values: Array) -> Array:
    return values if values.dtype in (np.float32, np.float64) else values.astype(np.float32)
