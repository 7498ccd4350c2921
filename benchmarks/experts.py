"""What each expert costs: `add` with one expert at a time, and with all, as multiples of real time.

    python benchmarks/experts.py [FILE_OR_FOLDER ...] [--experts appearance,motion]

Without files it makes three clips of its own (moving texture, title cards, speech where there is a voice).
The bound is plain decoding of the same files with PyAV in the same run; `ratio_to_decoding` is the time of
`add` over it. Loading the experts is not counted. JSON on standard output.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path

import av
import numpy as np

from wordreel.catalogue.store import LibraryStore
from wordreel.demo.audio import speak
from wordreel.demo.film import HEIGHT, RATE, WIDTH, title_card, write_film
from wordreel.experts import registry
from wordreel.ingest.add import add, default_jobs
from wordreel.media import Fence
from wordreel.runtime.sessions import shared_by
from wordreel.runtime.store import WeightStore


def make_clips(folder: Path) -> None:
    """Twenty seconds each of motion, of words on screen, and of words said."""
    rng = np.random.default_rng(0)
    texture = rng.integers(0, 255, (HEIGHT, 2 * WIDTH, 3), np.uint8)
    write_film(folder / "motion.mp4", (texture[:, 3 * i : 3 * i + WIDTH] for i in range(20 * RATE)))
    cards = (
        frame for n in range(5) for frame in title_card([f"Chapter {n}", "of a story"], 4, (50 * n, 60, 90))
    )
    write_film(folder / "titles.mp4", cards)
    said = speak(
        "This is a benchmark. It says a few sentences so that there is something to write down. " * 3
    )
    if said:
        write_film(folder / "speech.mp4", title_card([], len(said[0]) / said[1], (40, 80, 120)), said)


def decode(paths: list[Path]) -> tuple[float, float]:
    """Seconds it takes to decode every frame and sample, and the seconds of media there are."""
    began, media = time.perf_counter(), 0.0
    for path in paths:
        with av.open(str(path)) as opened:
            streams = [s for s in opened.streams if s.type in ("video", "audio")]
            for stream in streams:
                stream.thread_type = "AUTO"
            media += (opened.duration or 0) / 1e6
            for _ in opened.decode(streams):
                pass
    return time.perf_counter() - began, media


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--experts", default=",".join(registry.default_names()))
    options = parser.parse_args()
    names = options.experts.split(",")
    with tempfile.TemporaryDirectory() as scratch:
        paths = options.paths
        if not paths:
            paths = [Path(scratch) / "clips"]
            paths[0].mkdir()
            make_clips(paths[0])
        files = [f for p in paths for f in (sorted(p.iterdir()) if p.is_dir() else [p])]
        bound, media = decode(files)
        store = WeightStore()
        with shared_by(default_jobs()):
            loaded = {name: registry.load(name, store) for name in names}
        cases = {name: [expert] for name, expert in loaded.items()} | {"all together": list(loaded.values())}
        rows = {}
        with Fence() as fence:
            for number, (case, experts) in enumerate(cases.items()):
                with LibraryStore.create_or_open(Path(scratch) / f"library{number}") as library:
                    report = add(library, paths, experts, fence)
                rows[case] = {
                    "times_real_time": round(media / report.seconds, 1),
                    "ratio_to_decoding": round(report.seconds / bound, 2),
                    "files_per_minute": round(60 * len(report.added) / report.seconds, 1),
                }
        print(
            json.dumps(
                {
                    "cores": len(os.sched_getaffinity(0)),
                    "files": len(files),
                    "media_seconds": round(media, 1),
                    "plain_decoding_times_real_time": round(media / bound, 1),
                    "add": rows,
                },
                indent=2,
            )
        )


if __name__ == "__main__":
    main()
