"""Items, queries and comparisons for the tests of indexes on servers, fake and real."""

from __future__ import annotations

import numpy as np

from wordreel.index.base import Correction
from wordreel.index.exact import ExactIndex

EXPERTS, DIM = 3, 8


def items(count, seed=0, experts=EXPERTS, dim=DIM):
    """Unit vectors around a few centres, some experts absent, two items that are equal."""
    random = np.random.default_rng(seed)
    available = random.random((count, experts)) < 0.8
    available[1 % count] = available[0]
    centres = random.normal(size=(5, experts, dim))
    vectors = centres[random.integers(0, 5, count)] + 0.7 * random.normal(size=(count, experts, dim))
    vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
    vectors[1 % count] = vectors[0]
    return (vectors * available[..., None]).astype(np.float32), available


def queries(count, seed=1, experts=EXPERTS, dim=DIM):
    random = np.random.default_rng(seed)
    vectors = random.normal(size=(count, experts, dim)).astype(np.float32)
    weights = random.random((count, experts)).astype(np.float32)
    weights[0, 1:] = 0  # a query that wants one expert only
    return vectors, weights


def biases(count, seed=2):
    bias = np.random.default_rng(seed).normal(scale=0.1, size=count).astype(np.float32)
    return bias - bias.mean()


def cases(count):
    """Arguments of a search: plain, filtered, corrected, gated."""
    random = np.random.default_rng(3)
    half, few = random.random(count) < 0.5, np.zeros(count, bool)
    few[2:5] = True
    gated = Correction(biases(count, 4), random.random(count) < 0.5)
    return {
        "plain": {},
        "filtered": {"allowed": half},
        "few": {"allowed": few},
        "none": {"allowed": np.zeros(count, bool)},
        "corrected": {"correction": Correction(biases(count))},
        "corrected and filtered": {"correction": Correction(biases(count)), "allowed": half},
        "gated": {"correction": gated},
        "gated and filtered": {"correction": gated, "allowed": half},
    }


def assert_same(index, vectors, available, k=10, alive=None):
    """The index answers as `ExactIndex` does, in every case."""
    exact = ExactIndex(vectors, available)
    asked = queries(4, experts=vectors.shape[1], dim=vectors.shape[2])
    for name, case in cases(len(vectors)).items():
        allowed = case.get("allowed", np.ones(len(vectors), bool))
        case = {**case, "allowed": allowed if alive is None else allowed & alive}
        got, expected = index.search(*asked, k, **case), exact.search(*asked, k, **case)
        assert got.rows.tolist() == expected.rows.tolist(), name
        np.testing.assert_allclose(got.scores, expected.scores, atol=1e-6, err_msg=name)
        assert got.corrected.tolist() == expected.corrected.tolist(), name
