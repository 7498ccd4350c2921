"""Dynamic inverted softmax: fit, apply and text-to-video figures, against a plain rendering of the procedure.

    python benchmarks/hubness.py [BANK ITEMS QUERIES] [--repeat 3] [--threads N]

The plain rendering sorts every bank row to find the activation set, exponentiates whole matrices, tests
membership query by query, writes into its input and sorts every row for the ranks. Both sides get the same
files and must agree on every figure. Each runs in a process of its own, so that peak memory can be compared:
`memory` is the peak less what the process held once the matrices were read, plus the matrices. Reading is one
sum over both matrices. The result is JSON on standard output. `60000 2990 59800` is the size of MSR-VTT.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from wordreel.evaluate.ranks import recall
from wordreel.hubness import corrected_ranks, make

BETA = 20.0


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
    active = np.unique(np.argsort(-bank, axis=1)[:, :1])
    total = np.exp(bank * BETA).sum(axis=0)
    raised = np.exp(test * BETA)
    tops = np.argsort(-raised, axis=1)[:, 0]
    chosen = np.nonzero(np.array([top in active for top in tops]))[0]
    scores = test
    scores[chosen] = raised[chosen] / total
    right = right_items(*test.shape)
    distances = -scores
    ranked = np.sort(distances, axis=1)
    own = distances[np.arange(len(test)), right]
    rows, places = np.nonzero(ranked - own[:, None] == 0)
    ranks = np.bincount(rows, places) / np.bincount(rows) + 1
    return figures(ranks)


def wordreel(bank: np.ndarray, test: np.ndarray, threads: int | None = None) -> dict[str, float]:
    method = make("dis", beta=BETA)
    state = method.fit(bank, threads=threads)
    return figures(corrected_ranks(method, state, test, right_items(*test.shape), threads=threads))


def figures(ranks: np.ndarray) -> dict[str, float]:
    found = recall(np.asarray(ranks, np.float64))
    return {"r1": found.r1, "r5": found.r5, "r10": found.r10, "median_rank": found.median_rank}


def reading(bank: np.ndarray, test: np.ndarray) -> None:
    for matrix in (bank, test):
        matrix.sum()


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def one_side(name: str, folder: Path, repeat: int, threads: int | None) -> dict[str, object]:
    """Run one side in this process and say how long it took and how much memory it needed."""
    bank, test = np.load(folder / "bank.npy"), np.load(folder / "test.npy")
    given, before = bank.nbytes + test.nbytes, peak()
    seconds, read, found = [], [], {}
    for again in range(repeat):
        if again and name == "plain":  # it wrote into its input
            np.copyto(test, np.load(folder / "test.npy", mmap_mode="r"))
        start = time.perf_counter()
        reading(bank, test)
        read.append(time.perf_counter() - start)
        start = time.perf_counter()
        found = plain(bank, test) if name == "plain" else wordreel(bank, test, threads)
        seconds.append(time.perf_counter() - start)
    return {
        "seconds": min(seconds),
        "reading": min(read),
        "memory": given + peak() - before,
        "given": given,
        "figures": found,
    }


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
    print(
        json.dumps(
            {
                "bank": bank,
                "items": items,
                "queries": queries,
                "figures": ours["figures"],
                "figures_agree": agree,
                "seconds": {name: round(side["seconds"], 3) for name, side in sides.items()},
                "speed_ratio": round(theirs["seconds"] / ours["seconds"], 2),
                "memory_mb": {name: round(side["memory"] / 1e6) for name, side in sides.items()},
                "memory_ratio": round(theirs["memory"] / ours["memory"], 2),
                "memory_ratio_beside_the_input": round(
                    (theirs["memory"] - theirs["given"]) / max(1, ours["memory"] - ours["given"]), 1
                ),
                "times_reading_once": round(ours["seconds"] / ours["reading"], 2),
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    main()
