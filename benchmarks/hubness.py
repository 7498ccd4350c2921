"""Dynamic inverted softmax: fit, and text-to-video figures before and after, against a plain rendering.

    python benchmarks/hubness.py [BANK ITEMS QUERIES] [--repeat 3] [--threads N]

The plain rendering sorts every bank row to find the activation set, exponentiates whole matrices, tests
membership query by query, writes into its input and sorts every row for the ranks. Both sides get the same
files and must agree on every figure; wordreel maps them, the other reads them first, which is not counted.

Each runs in a process of its own: `memory` is its peak beyond what it held before it opened the files, mapped
pages included. Reading once is one sum over both files, opened anew, in as many threads as wordreel has and
in the same blocks: from warm files (`times_reading_once`: mapping them is part of both times), and from
memory (`times_summing_in_memory`: everything is there already, in both times). `60000 2990 59800` is the size
of MSR-VTT. The result is JSON on standard output.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal, TypeVar

import numpy as np

from wordreel.hubness import make_method, ranking_scores
from wordreel.hubness.blocks import block_rows, each_span
from wordreel.retrieval.metrics import retrieval_metrics
from wordreel.retrieval.ranks import ranks_of

BETA = 20.0
T = TypeVar("T")


def synthetic(folder: Path, bank: int, items: int, queries: int) -> None:
    """Cosines of texts and videos in two cones, so that some videos are hubs; captions in order of video."""
    rng = np.random.default_rng(0)
    dim = 64
    gap = rng.normal(size=dim).astype(np.float32)
    meaning = rng.normal(size=(items, dim)).astype(np.float32)
    videos = meaning + rng.normal(0, 0.8, (items, 1)).astype(np.float32) * gap
    videos /= np.linalg.norm(videos, axis=1, keepdims=True)
    for name, count in (("bank", bank), ("test", queries)):
        out = np.lib.format.open_memmap(folder / f"{name}.npy", "w+", np.float32, (count, items))
        for start in range(0, count, 4096):
            right = np.arange(start, min(start + 4096, count)) * items // count
            texts = meaning[right] + gap + 1.5 * rng.normal(size=(len(right), dim)).astype(np.float32)
            out[start : start + 4096] = texts / np.linalg.norm(texts, axis=1, keepdims=True) @ videos.T
        out.flush()


def right_items(queries: int, items: int) -> np.ndarray:
    return np.arange(queries) * items // queries


def plain(bank: np.ndarray, test: np.ndarray) -> dict[str, float]:
    """The procedure as one would first write it down."""
    right = right_items(*test.shape)
    before = plain_ranks(test, right)
    active = np.unique(np.argsort(-bank, axis=1)[:, :1])
    total = np.exp(bank * BETA).sum(axis=0)
    raised = np.exp(test * BETA)
    tops = np.argsort(-raised, axis=1)[:, 0]
    chosen = np.nonzero(np.array([top in active for top in tops]))[0]
    scores = test
    scores[chosen] = raised[chosen] / total
    return figures(before, plain_ranks(scores, right))


def plain_ranks(scores: np.ndarray, right: np.ndarray) -> np.ndarray:
    distances = -scores
    ranked = np.sort(distances, axis=1)
    own = distances[np.arange(len(scores)), right]
    rows, places = np.nonzero(ranked - own[:, None] == 0)
    return np.bincount(rows, places) / np.bincount(rows) + 1


def wordreel(bank: np.ndarray, test: np.ndarray, threads: int | None = None) -> dict[str, float]:
    method = make_method("dis", beta=BETA)
    state = method.fit(bank, threads=threads)
    right = right_items(*test.shape)
    scores = ranking_scores(method.apply(test, state, threads=threads))
    return figures(ranks_of(test, right), ranks_of(scores, right))


def figures(*sides: np.ndarray) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, ranks in zip(("before", "after"), sides, strict=True):
        side = retrieval_metrics(np.asarray(ranks, np.float64))
        found |= {f"{name}.{key}": getattr(side, key) for key in ("r1", "r5", "r10", "median_rank")}
    return found


def reading(bank: np.ndarray, test: np.ndarray, threads: int | None = None) -> None:
    """Touch every value once."""
    for matrix in (bank, test):
        step = block_rows(matrix.shape[1])

        def work(start: int, stop: int, matrix: np.ndarray = matrix, step: int = step) -> float:
            return sum(float(matrix[at : min(at + step, stop)].sum()) for at in range(start, stop, step))

        each_span(matrix.shape, work, threads)


def peak() -> int:
    """The most memory this process has held, mapped pages included."""
    found = re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())
    return int(found[1]) * 1024 if found else 0


def one_side(name: str, folder: Path, repeat: int, threads: int | None) -> dict[str, object]:
    """Run one side in this process and say how long it took and how much memory it needed."""
    files = (folder / "bank.npy", folder / "test.npy")
    before = peak()
    found: dict[str, float] = {}
    seconds: dict[str, list[float]] = {"work": [], "read": [], "work in memory": [], "read in memory": []}

    def timed(what: str, work: Callable[[], T]) -> T:
        start = time.perf_counter()
        result = work()
        seconds[what].append(time.perf_counter() - start)
        return result

    def load(mode: Literal["r"] | None = None) -> tuple[np.ndarray, np.ndarray]:
        return np.load(files[0], mmap_mode=mode), np.load(files[1], mmap_mode=mode)

    for _ in range(repeat):
        if name == "plain":
            found = timed("work", partial(plain, *load()))  # anew each time: it writes into its input
        else:
            timed("read", lambda: reading(*load("r"), threads))
            found = timed("work", lambda: wordreel(*load("r"), threads))
    memory = peak() - before
    if name == "wordreel":
        held = load()
        for _ in range(repeat):
            timed("read in memory", lambda: reading(*held, threads))
            timed("work in memory", lambda: wordreel(*held, threads))
    least = {what: min(times) for what, times in seconds.items() if times}
    return {"seconds": least, "memory": memory, "figures": found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sizes", nargs="*", type=int, metavar="BANK ITEMS QUERIES")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--side", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.side:
        name, folder = given.side
        print(json.dumps(one_side(name, Path(folder), given.repeat, given.threads)))
        return
    bank, items, queries = given.sizes or (20_000, 1_000, 10_000)
    with tempfile.TemporaryDirectory() as folder:
        synthetic(Path(folder), bank, items, queries)
        sides = {}
        for name in ("plain", "wordreel"):
            command = [sys.executable, __file__, "--side", name, folder, "--repeat", str(given.repeat)]
            command += [] if given.threads is None else ["--threads", str(given.threads)]
            sides[name] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    ours, theirs = sides["wordreel"], sides["plain"]
    agree = all(abs(ours["figures"][key] - theirs["figures"][key]) < 0.02 for key in ours["figures"])
    took = ours["seconds"]
    result = {
        "bank": bank,
        "items": items,
        "queries": queries,
        "figures": ours["figures"],
        "figures_agree": agree,
        "seconds": {"plain": theirs["seconds"], "wordreel": took},
        "speed_ratio": round(theirs["seconds"]["work"] / took["work"], 2),
        "memory_mb": {name: round(side["memory"] / 1e6) for name, side in sides.items()},
        "memory_ratio": round(theirs["memory"] / ours["memory"], 2),
        "times_reading_once": round(took["work"] / took["read"], 2),
        "times_summing_in_memory": round(took["work in memory"] / took["read in memory"], 2),
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
