"""The mixture similarity every model here shares.

    s(q, v) = Σₘ wₘ(q) aₘ(v) ⟨qₘ, vₘ⟩ / Σₘ wₘ(q) aₘ(v)

Availability `a` belongs to the video alone, so a column never depends on which query it is paired with
(Collaborative Experts, arXiv 1907.13487, with the leak of its first release mended). Where no expert is
both wanted and available the similarity is 0.

Two videos are alike by the experts that both have, weighted by w that belongs to neither:

    s(v, u) = Σₘ wₘ aₘ(v) aₘ(u) ⟨vₘ, uₘ⟩ / Σₘ wₘ aₘ(v) aₘ(u)

which is the same with the first video as the query and wₘ aₘ(v) as its weights. It is symmetric, and 1 for
a video and itself where rows have unit length.

Cost: two matrix products, `[queries, experts · dim] × [experts · dim, videos]` and
`[queries, experts] × [experts, videos]`, and one division.
"""

from __future__ import annotations

import numpy as np

from wordreel.types import Bool, Float32


def flatten_queries(vectors: Float32, weights: Float32) -> Float32:
    """Flatten `[q, experts, dim]` and `[q, experts]` to the weighted rows `[q, experts · dim]`."""
    return np.ascontiguousarray((vectors * weights[:, :, None]).reshape(len(vectors), -1))


def mixture(queries: Float32, weights: Float32, videos: Float32, available: Bool) -> Float32:
    """Compute similarities `[q, v]` of `queries [q, e, d]` with `weights [q, e]` to `videos [v, e, d]`.

    >>> q = np.array([[[1.0, 0.0], [0.0, 1.0]]], np.float32)
    >>> v = np.array([[[1.0, 0.0], [0.0, 0.0]]], np.float32)
    >>> mixture(q, np.array([[1, 3]], np.float32), v, np.array([[True, False]]))
    array([[1.]], dtype=float32)
    """
    present = videos * available[:, :, None]
    top = flatten_queries(queries, weights) @ present.reshape(len(videos), -1).T
    return divide(top, weights @ available.T.astype(np.float32))


def divide(top: Float32, bottom: Float32) -> Float32:
    """Compute `top / bottom`, 0 where `bottom` is 0."""
    return np.divide(top, bottom, out=np.zeros_like(top), where=bottom > 0)


def alike(videos: Float32, available: Bool, others: Float32, also: Bool, weights: Float32) -> Float32:
    """Compute similarities `[v, u]` of `videos [v, e, d]` to `others [u, e, d]`; `weights [e]`.

    0 where no expert is common to both.

    >>> v = np.array([[[1.0, 0.0], [0.0, 1.0]]], np.float32)
    >>> u = np.array([[[0.6, 0.8], [1.0, 0.0]], [[0.6, 0.8], [0.0, 0.0]]], np.float32)
    >>> a = np.array([[True, True], [True, False]])
    >>> alike(v, a[:1], u, a, np.array([1, 3], np.float32)).round(2).tolist()
    [[0.15000000596046448, 0.6000000238418579]]
    """
    return mixture(videos, available * weights, others, also)
