"""Fitting query-bank statistics from embeddings, against the matrix product alone.

    python benchmarks/hubness_embeddings.py [BANK ITEMS DIM] [--repeat 3] [--threads N]

One pass gathers the log-sum-exp, the best item of each bank query (both for DIS) and the k largest of each
item (for CSLS and for NNN), and never holds the similarities. The product alone is the same float32 product
in the fastest blocks of a few sizes, into memory that is used again. `share_of_product_rate` is the time of
the product over that of the pass. The result is JSON on standard output.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from wordreel.hubness import fit_many, make_method, product


def unit(rng: np.random.Generator, rows: int, dim: int) -> np.ndarray:
    vectors = rng.normal(size=(rows, dim)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def multiply(bank: np.ndarray, gallery: np.ndarray, step: int) -> None:
    out = np.empty((step, len(gallery)), np.float32)
    for start in range(0, len(bank), step):
        rows = bank[start : start + step]
        np.matmul(rows, gallery.T, out=out[: len(rows)])


def least(repeat: int, work: Callable[[], object]) -> float:
    seconds = []
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sizes", nargs="*", type=int, metavar="BANK ITEMS DIM")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--threads", type=int)
    given = parser.parse_args()
    size, items, dim = given.sizes or (4_000, 20_000, 512)
    rng = np.random.default_rng(0)
    bank, gallery = unit(rng, size, dim), unit(rng, items, dim)
    source = product(bank, gallery)
    alone = min(least(given.repeat, partial(multiply, bank, gallery, s)) for s in (128, 512, 2048))
    result: dict[str, object] = {"bank": size, "items": items, "dim": dim, "product_seconds": round(alone, 3)}
    result["product_gflops"] = round(2e-9 * size * items * dim / alone, 1)
    for name, methods in {
        "is": [make_method("is")],
        "dis": [make_method("dis")],
        "dis+csls": [make_method("dis"), make_method("csls")],
        "is+dis+csls+nnn": [make_method("is"), make_method("dis"), make_method("csls"), make_method("nnn")],
    }.items():
        took = least(given.repeat, partial(fit_many, methods, source, threads=given.threads))
        result[name] = {"seconds": round(took, 3), "share_of_product_rate": round(alone / took, 3)}
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
