"""Frames a second of the appearance expert: the file that ships against the published network.

    python benchmarks/appearance.py [FRAMES]

Both see the same frames in the same run, each as the library decodes them for it (their shorter side at 224
and 260 pixels), cropped and computed, alternately and several times; `ratio` is how many times as fast the
first is. `load_seconds` is what it takes to open each. JSON on standard output.
"""

from __future__ import annotations

import json
import statistics
import sys
import time

import cv2
import numpy as np

from wordreel.experts.appearance import PUBLISHED, SHIPPED, AppearanceExpert
from wordreel.media.types import Frames
from wordreel.nets.runtime import cores
from wordreel.weights.store import WeightStore

ROUNDS = 5


def frames_of(count: int, short_side: int) -> Frames:
    """Smooth coloured noise, twice as wide as high."""
    rng = np.random.default_rng(0)
    coarse = rng.integers(0, 256, (count, 18, 36, 3), np.uint8)
    shape = (short_side * 16 // 9, short_side)
    images = np.stack([cv2.resize(one, shape, interpolation=cv2.INTER_CUBIC) for one in coarse])
    return Frames(images, np.arange(count, dtype=np.float64), 1.0)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 96
    store = WeightStore()
    store.fetch(PUBLISHED.weights[0])
    experts, frames, seconds, loaded = {}, {}, {}, {}
    for name, source in (("shipped", SHIPPED), ("published", PUBLISHED)):
        began = time.perf_counter()
        experts[name] = AppearanceExpert(store, source)
        loaded[name] = round(time.perf_counter() - began, 2)
        frames[name] = frames_of(count, source.size)
        seconds[name] = []
        experts[name].extract(frames_of(16, source.size))
    for _ in range(ROUNDS):
        for name, expert in experts.items():
            began = time.perf_counter()
            expert.extract(frames[name])
            seconds[name].append(time.perf_counter() - began)
    speed = {name: count / statistics.median(times) for name, times in seconds.items()}
    print(
        json.dumps(
            {
                "cores": cores(),
                "frames": count,
                "frames_per_second": {name: round(value, 1) for name, value in speed.items()},
                "ratio": round(speed["shipped"] / speed["published"], 2),
                "load_seconds": loaded,
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    main()
