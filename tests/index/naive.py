"""Search by the definition in float64: score every pair, sort whole rows. Every index must equal it."""

import numpy as np

from wordreel.index.base import Correction


def naive_scores(queries, weights, items, available):
    """`[q, n]` float64 mixture similarities."""
    scores = np.zeros((len(queries), len(items)))
    for q in range(len(queries)):
        for v in range(len(items)):
            used = [m for m in range(items.shape[1]) if available[v, m]]
            bottom = sum(float(weights[q, m]) for m in used)
            top = sum(
                float(weights[q, m]) * float(queries[q, m].astype(float) @ items[v, m].astype(float))
                for m in used
            )
            scores[q, v] = top / bottom if bottom > 0 else 0.0
    return scores


def naive_search(scores, k, allowed, correction):
    """For each query its best rows by the definition, and whether it was corrected."""
    found = []
    for row in scores:
        rows = [v for v in range(len(row)) if allowed is None or allowed[v]]
        plain = sorted(rows, key=lambda v: (-row[v], v))
        opened = correction is not None and (
            correction.active is None or (bool(plain) and bool(correction.active[plain[0]]))
        )
        if opened:
            plain = sorted(rows, key=lambda v: (-np.float32(row[v] - float(correction.bias[v])), v))
        found.append((plain[:k], opened))
    return found


def whole_numbers(rng, n, queries=4, experts=3, dim=5):
    """Items, availability, queries, weights and biases of small integers: exact, and full of ties."""
    items = rng.integers(-2, 3, (n, experts, dim)).astype(np.float32)
    available = rng.random((n, experts)) < 0.7
    items[~available] = 0
    asked = rng.integers(-2, 3, (queries, experts, dim)).astype(np.float32)
    weights = rng.integers(0, 2, (queries, experts)).astype(np.float32)
    return items, available, asked, weights, rng.integers(-1, 2, n).astype(np.float32)


def unit_vectors(rng, n, queries=4, experts=3, dim=24, present=0.7):
    """The same of unit vectors around a few centres, the queries pushed aside as text is from video."""
    centres = rng.normal(size=(5, experts, dim))

    def around(count, spread, push):
        made = centres[rng.integers(0, 5, count)] + spread * rng.normal(size=(count, experts, dim)) + push
        return (made / np.linalg.norm(made, axis=2, keepdims=True)).astype(np.float32)

    items, available = around(n, 0.5, 0.0), rng.random((n, experts)) < present
    items[~available] = 0
    weights = rng.random((queries, experts)).astype(np.float32)
    return items, available, around(queries, 0.9, 0.8), weights, (0.2 * rng.random(n)).astype(np.float32)


def correction_of(kind, rng, bias):
    active = rng.random(len(bias)) < 0.5
    return {"plain": None, "corrected": Correction(bias), "gated": Correction(bias, active)}[kind]


def check_search(index, case, k, allowed, correction):
    """Same rows in the same order as the definition, equal scores, -1 past the end."""
    items, available, queries, weights, _ = case
    scores = naive_scores(queries, weights, items, available)
    found = index.search(queries, weights, k, allowed, correction)
    assert found.rows.shape == found.scores.shape == (len(queries), k)
    for q, (rows, opened) in enumerate(naive_search(scores, k, allowed, correction)):
        assert found.rows[q].tolist() == rows + [-1] * (k - len(rows))
        assert found.corrected[q] == opened
        wanted = scores[q, rows] - (correction.bias[rows] if opened else 0)
        np.testing.assert_allclose(found.scores[q][: len(rows)], wanted, atol=1e-5)
        assert np.isneginf(found.scores[q][len(rows) :]).all()
