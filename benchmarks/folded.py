"""Folded search against plain search of the same index, and against the dense definition of each method.

    python benchmarks/folded.py [items] [bank] [queries] [dim]

Items are clustered and the bank has a gap to them, as text has to video. For each foldable method the ten
best of the folded index must be those of `method.apply` on the whole matrix of similarities. Times are ratios
to plain search of the same index: batches of queries, and one query at a time as a live search asks; the runs
of all methods alternate, and the median of the ratios counts.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

import numpy as np

from wordreel.hubness import Method, make_method, product
from wordreel.hubness.scores import ranking_scores
from wordreel.index.base import Correction
from wordreel.index.exact import ExactIndex
from wordreel.index.topk import topk_ids
from wordreel.types import Float32

METHODS = ("is", "csls", "nnn", "cent", "sinkhorn", "dis")
ROUNDS = 9
K = 10


def world(items: int, bank: int, queries: int, dim: int) -> tuple[Float32, Float32, Float32]:
    """Clustered unit vectors; bank and queries sit around the same centres, pushed aside together."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(max(items // 50, 1), dim)).astype(np.float32)
    gap = rng.normal(size=dim).astype(np.float32)

    def around(count: int, spread: float, push: float) -> Float32:
        chosen = rng.zipf(1.3, size=count) % len(centres)
        made = centres[chosen] + spread * rng.normal(size=(count, dim)).astype(np.float32) + push * gap
        return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)

    return around(items, 0.8, 0.0), around(bank, 1.2, 0.6), around(queries, 1.2, 0.6)


def same_top(index: ExactIndex, method: Method, correction: Correction, state: object, items: Float32,
             queries: Float32) -> float:  # fmt: skip
    """The share of queries whose ten best, in order, are those of the dense definition."""
    dense = topk_ids(ranking_scores(method.apply(queries @ items.T, state)), K)  # type: ignore[arg-type]
    found = index.search(queries[:, None], np.ones((len(queries), 1), np.float32), K, None, correction)
    return float((found.rows == dense).all(axis=1).mean())


def main(items: int = 100_000, bank: int = 4_000, queries: int = 64, dim: int = 512) -> None:
    gallery, sample, asked = world(items, bank, queries, dim)
    index = ExactIndex(gallery[:, None], np.ones((items, 1), bool))
    corrections: dict[str, Correction | None] = {"plain": None}
    identical = {}
    for name in METHODS:
        method = make_method(name)
        state = method.fit(product(sample, gallery))
        made = Correction(state.bias(), state.activation if method.gated else None)
        corrections[name] = made
        identical[name] = same_top(index, method, made, state, gallery, asked)
    one = np.ones((queries, 1), np.float32)

    def batch(name: str) -> Callable[[], object]:
        return lambda: index.search(asked[:, None], one, K, None, corrections[name])

    def single(name: str) -> Callable[[], object]:
        return lambda: [index.search(q[None, None], one[:1], K, None, corrections[name]) for q in asked[:8]]

    report = {"items": items, "bank": bank, "queries": queries, "dim": dim, "identical_top10": identical}
    for label, kind in (("batch", batch), ("single", single)):
        report[label] = _ratios({name: kind(name) for name in corrections})
    print(json.dumps(report, indent=2))


def _ratios(work: dict[str, Callable[[], object]]) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(ROUNDS):
        for name, run in work.items():
            start = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - start)
    plain = np.array(times["plain"])
    ratios = {name: float(np.median(np.array(took) / plain)) for name, took in times.items()}
    return {"plain_seconds": float(np.median(plain)), **{name: round(r, 3) for name, r in ratios.items()}}


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
