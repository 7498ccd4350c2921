"""Figures of a captioned set in both directions, against a plain rendering of the published metric code.

    python benchmarks/metrics.py [CAPTIONS VIDEOS] [--repeat 3]

The plain rendering negates the matrix, sorts every row of it, and finds the places of the right answer in the
sorted row; the other way round it does so video by video, caption by caption. Both sides get the same file
and must agree on every figure. Each runs in a process of its own, so that peak memory can be compared:
`memory` is the peak less what the process held once the matrix was read, plus the matrix. The third side is
wordreel on the mapped file, where `memory` is all that the process took, with the pages of the file. The
result is JSON on standard output. `59800 2990`, the default, is the size of MSR-VTT.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np

from wordreel.retrieval.caption_ranks import arrange, text_to_video, video_to_text
from wordreel.retrieval.metrics import RetrievalMetrics

FILLING = 1e8  # the distance of a caption that is none
DIRECTIONS = ("t2v", "v2t")


def synthetic(path: Path, captions: int, videos: int) -> None:
    """Cosines of captions and videos that mostly lie near each other; captions in order of video."""
    rng = np.random.default_rng(0)
    meaning = rng.normal(size=(videos, 64)).astype(np.float32)
    shown = meaning / np.linalg.norm(meaning, axis=1, keepdims=True)
    out = np.lib.format.open_memmap(path, "w+", np.float32, (captions, videos))
    for start in range(0, captions, 4096):
        right = np.arange(start, min(start + 4096, captions)) // (captions // videos)
        texts = meaning[right] + 2 * rng.normal(size=(len(right), 64)).astype(np.float32)
        out[start : start + 4096] = texts / np.linalg.norm(texts, axis=1, keepdims=True) @ shown.T
    out.flush()


def mask_of(captions: int) -> np.ndarray:
    """Six captions are filling, as in the test split of MSR-VTT."""
    mask = np.ones(captions)
    mask[captions // 7 :: captions // 6] = 0
    return mask


def plain_t2v(sims: np.ndarray, mask: np.ndarray) -> list[float]:
    per_video = len(sims) // sims.shape[1]
    distances = -sims
    ranked = np.sort(distances, axis=1)
    own = distances[np.arange(len(sims)), np.arange(len(sims)) // per_video]
    rows, places = np.nonzero(ranked - own[:, None] == 0)
    ranks = np.bincount(rows, places) / np.bincount(rows)
    return plain_figures(ranks[mask.astype(bool)])


def plain_v2t(sims: np.ndarray, mask: np.ndarray) -> list[float]:
    per_video = len(sims) // sims.shape[1]
    distances = -sims.T
    ranks = []
    for video, row in enumerate(distances):
        row[mask == 0] = FILLING
        ranked = np.sort(row)
        least = np.inf
        for distance in row[video * per_video : (video + 1) * per_video]:
            if distance != FILLING:
                least = min(least, float(np.mean(np.nonzero(ranked - distance == 0)[0])))
        ranks.append(least)
    return plain_figures(np.array(ranks))


def plain_figures(ranks: np.ndarray) -> list[float]:
    shares = [100 * float(np.mean(hit)) for hit in (ranks == 0, ranks < 5, ranks < 10, ranks < 50)]
    return [*shares, float(np.median(ranks)) + 1, float(np.mean(ranks)) + 1]


def values(found: RetrievalMetrics) -> list[float]:
    return list(asdict(found).values())[:6]


def peak() -> int:
    status = Path("/proc/self/status")
    if status.exists():  # the other counter begins with the peak of the process that started this one
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def one_side(name: str, path: Path, repeat: int) -> dict[str, object]:
    """Run one side in this process and say how long it took and how much memory it needed."""
    start_peak = peak()
    sims = np.load(path, mmap_mode="r" if name == "mapped" else None)
    given = 0 if name == "mapped" else sims.nbytes
    before = start_peak if name == "mapped" else peak()
    mask = mask_of(len(sims))
    captions = arrange(sims.shape[1], len(sims), mask=mask)
    ways = {
        "plain": {"t2v": lambda: plain_t2v(sims, mask), "v2t": lambda: plain_v2t(sims, mask)},
        "wordreel": {
            "t2v": lambda: values(text_to_video(sims, captions)),
            "v2t": lambda: values(video_to_text(sims, captions)),
        },
    }["plain" if name == "plain" else "wordreel"]
    seconds, figures = dict.fromkeys(DIRECTIONS, np.inf), {}
    for _ in range(repeat):
        for direction in DIRECTIONS:
            start = time.perf_counter()
            figures[direction] = ways[direction]()
            seconds[direction] = min(seconds[direction], time.perf_counter() - start)
    start = time.perf_counter()
    sims.sum()
    reading = time.perf_counter() - start
    return {"seconds": seconds, "figures": figures, "memory": given + peak() - before, "reading": reading}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sizes", nargs="*", type=int, metavar="CAPTIONS VIDEOS")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--side", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.side:
        name, path = given.side
        print(json.dumps(one_side(name, Path(path), given.repeat)))
        return
    captions, videos = given.sizes or (59_800, 2_990)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sims.npy"
        synthetic(path, captions, videos)
        sides = {}
        for name in ("plain", "wordreel", "mapped"):
            command = [sys.executable, __file__, "--side", name, str(path), "--repeat", str(given.repeat)]
            sides[name] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    theirs, ours = sides["plain"], sides["wordreel"]
    agree = all(
        np.allclose(side["figures"][direction], theirs["figures"][direction], atol=0.01)
        for side in sides.values()
        for direction in DIRECTIONS
    )
    print(
        json.dumps(
            {
                "captions": captions,
                "videos": videos,
                "figures": {key: [round(value, 2) for value in ours["figures"][key]] for key in DIRECTIONS},
                "figures_agree": agree,
                "seconds": {
                    name: {key: round(value, 3) for key, value in side["seconds"].items()}
                    for name, side in sides.items()
                },
                "speed_ratio": {
                    key: round(theirs["seconds"][key] / ours["seconds"][key], 1) for key in DIRECTIONS
                },
                "memory_mb": {name: round(side["memory"] / 1e6) for name, side in sides.items()},
                "memory_ratio": round(theirs["memory"] / ours["memory"], 2),
                "times_reading_once": round(ours["seconds"]["t2v"] / ours["reading"], 1),
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    main()
