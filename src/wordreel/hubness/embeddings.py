"""Fit a method from embeddings: similarities are computed block by block and never stored.

`product` is for single vectors (one matrix product per block), `mixtures` for mixtures of experts (see
`models.similarity`). Both can be read again, so Sinkhorn can be fitted too. Memory: one batch of
128 MB at most beside the embeddings (see `accumulate`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wordreel.errors import HubnessError
from wordreel.hubness.blocks import Array, SimilaritySource
from wordreel.hubness.method import Method
from wordreel.hubness.state import State
from wordreel.models.similarity import divide, flatten_queries
from wordreel.types import Bool, Float32


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
    """A source of inner products; pass unit vectors for cosines."""
    queries, items = np.asarray(queries), np.asarray(items)
    if queries.ndim != 2 or items.ndim != 2 or queries.shape[1] != items.shape[1]:
        raise HubnessError(
            f"embeddings are matrices [rows, dim] of one dim, not {queries.shape} and {items.shape}"
        )
    return ProductSource(queries, _floats(items))


def mixtures(queries: Float32, weights: Float32, items: Float32, available: Bool) -> SimilaritySource:
    """A source of mixture similarities of `[m, e, d]` with `weights [m, e]` to `[n, e, d]`."""
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
    masked = np.where(available[:, :, None], items, 0).reshape(len(items), -1)
    return MixtureSource(queries, weights, masked.astype(np.float32), available.astype(np.float32))


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
    """Fit on bank `[m, e, d]` with `weights [m, e]` and gallery `[n, e, d]` with `available [n, e]`."""
    return method.fit(mixtures(bank, weights, gallery, available), threads=threads, device=device)


def _floats(values: Array) -> Array:
    return values if values.dtype in (np.float32, np.float64) else values.astype(np.float32)
