"""Similarities with hubs: unit vectors of texts and videos in two cones, as joint embeddings have them."""

import numpy as np


def hubby(seed, bank=800, queries=600, items=300, dim=24, noise=1.0):
    """`bank [bank, items]`, `queries [queries, items]` and the right item of each query."""
    rng = np.random.default_rng(seed)
    gap = rng.normal(size=dim)
    pull = rng.normal(0, 0.8, (items, 1))  # how far a video leans towards the texts

    def unit(x):
        return x / np.linalg.norm(x, axis=1, keepdims=True)

    meaning = rng.normal(size=(items, dim))
    videos = unit(meaning + pull * gap)

    def texts(count):
        right = rng.integers(0, items, count)
        return unit(meaning[right] + gap + noise * rng.normal(size=(count, dim))), right

    (train, _), (test, right) = texts(bank), texts(queries)
    return (train @ videos.T).astype(np.float32), (test @ videos.T).astype(np.float32), right
