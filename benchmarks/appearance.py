"""Frames a second of the appearance expert: the file that ships against the published network.

    python benchmarks/appearance.py [FRAMES]

Both see the same frames in the same run, each as the library decodes them for it (their shorter side at 224
and 260 pixels), cropped and computed, alternately and several times; `ratio` is how many times as fast the
first is. JSON on standard output.
"""

from __future__ import annotations

import json
import statistics
import sys
import time

import cv2
import numpy as np
from numpy.typing import NDArray

from wordreel.experts.appearance import SIZE, open_file
from wordreel.experts.preprocess import resize_crop
from wordreel.runtime.nets.efficientnet_lite import build, fold
from wordreel.runtime.sessions import Network, picture_batch
from wordreel.runtime.store import WeightStore
from wordreel.runtime.torch_files.torch_file import read_state_dict
from wordreel.util.cores import cores

WEIGHTS, PUBLISHED_SIZE = "efficientnet-lite2-checkpoint", 260
ROUNDS = 5


def frames_of(count: int, short_side: int) -> NDArray[np.uint8]:
    """Smooth coloured noise, 16 to 9."""
    rng = np.random.default_rng(0)
    coarse = rng.integers(0, 256, (count, 18, 32, 3), np.uint8)
    shape = (short_side * 16 // 9, short_side)
    return np.stack([cv2.resize(one, shape, interpolation=cv2.INTER_CUBIC) for one in coarse])


def published() -> Network:
    store = WeightStore()
    store.fetch(WEIGHTS)
    return Network(build(fold(read_state_dict(store.file(WEIGHTS)))).SerializeToString())


def run(network: Network, frames: NDArray[np.uint8], size: int) -> float:
    """Seconds for all frames, as the expert computes them."""
    batch, began = picture_batch(), time.perf_counter()
    for start in range(0, len(frames), batch):
        network(images=resize_crop(frames[start : start + batch], size))
    return time.perf_counter() - began


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 96
    networks = {"shipped": (open_file().network(), SIZE), "published": (published(), PUBLISHED_SIZE)}
    frames = {name: frames_of(count, size) for name, (_, size) in networks.items()}
    seconds: dict[str, list[float]] = {name: [] for name in networks}
    for number in range(ROUNDS + 1):
        for name, (network, size) in networks.items():
            lasted = run(network, frames[name], size)
            if number:  # the first round warms up
                seconds[name].append(lasted)
    speed = {name: count / statistics.median(times) for name, times in seconds.items()}
    facts = {
        "cores": cores(),
        "frames": count,
        "frames_per_second": {name: round(value, 1) for name, value in speed.items()},
        "ratio": round(speed["shipped"] / speed["published"], 2),
    }
    print(json.dumps(facts, indent=2))


if __name__ == "__main__":
    main()
