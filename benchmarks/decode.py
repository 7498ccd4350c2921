"""How much the fence costs: frames through `Fence.stream` against a plain PyAV loop over the same file.

    python benchmarks/decode.py [FILE_OR_FOLDER ...] [--repeat 3] [--height 720] [--hwaccel cuda]

The plain loop decodes every frame with the same thread settings and does nothing else, so it is the bound
for exact frames. Both are run in turn, again and again, in one process; the best times are compared. The
result is JSON on standard output: `ratio` is fence / plain, `times_real_time` is media seconds / seconds.

With `--hwaccel`, the last case is also decoded on that device: `files` says how many files it decoded and on
how many it failed, `largest_difference` compares the frames (0 to 255) with those of software, and
`cpu_seconds` is the processor time of all decoders.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import av
import numpy as np

from wordreel.errors import MediaError
from wordreel.media import AudioNeed, Fence, FrameNeed, Frames, Need
from wordreel.media.hardware import DEVICES, HwDevices

CASES: dict[str, list[Need]] = {
    "1 fps at 256 px": [FrameNeed(1, 256)],
    "8 fps at 256 px": [FrameNeed(8, 256)],
    "8 fps at 128 px, 1 fps at 256 px, 5 fps at 48 px": [
        FrameNeed(8, 128),
        FrameNeed(1, 256),
        FrameNeed(5, 48),
    ],
    "the same and sound at 16 and 22 kHz": [
        FrameNeed(8, 128),
        FrameNeed(1, 256),
        FrameNeed(5, 48),
        AudioNeed(16000),
        AudioNeed(22050),
    ],
}


def synthetic(path: Path, seconds: int, height: int) -> Path:
    """A moving texture with grain, 30 frames a second, H.264 with B-frames at 3 Mbit/s."""
    width = height * 16 // 9 // 2 * 2
    noise = np.random.default_rng(0)
    texture = noise.integers(0, 255, (height // 8, width // 4, 3), np.uint8).repeat(8, 0).repeat(8, 1)
    grain = noise.integers(0, 40, (7, height, width, 3), np.uint8)
    container = av.open(str(path), "w")
    stream = container.add_stream("libx264", rate=30, options={"preset": "veryfast", "bf": "3"})
    stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
    stream.bit_rate = 3_000_000
    for index in range(30 * seconds):
        shift = 4 * index % width
        image = texture[:, shift : shift + width] // 2 + grain[index % 7] + 40 * (index // 150 % 3)
        frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(image, np.uint8), format="rgb24")
        frame.pts, frame.time_base = index, Fraction(1, 30)
        container.mux(stream.encode(frame))
    container.mux(stream.encode(None))
    container.close()
    return path


def plain(path: Path) -> float:
    """Decode every frame and drop it; returns the media's seconds."""
    last = 0.0
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        stream.thread_type = "AUTO"
        stream.codec_context.thread_count = 2
        for frame in container.decode(stream):
            last = frame.time or last
    return last


def timed(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def through(fence: Fence, path: Path, needs: list[Need]) -> None:
    for window in fence.stream(path, needs):
        assert len(window.parts) == len(needs)


def measure(path: Path, fence: Fence, repeat: int) -> dict[str, object]:
    """Best of `repeat` rounds; in each, the plain loop and every case run once, in turn."""
    seconds = fence.probe(path).duration
    bound: list[float] = []
    taken: dict[str, list[float]] = {name: [] for name in CASES}
    for _ in range(repeat):
        bound.append(timed(lambda: plain(path)))
        for name, needs in CASES.items():
            taken[name].append(timed(lambda needs=needs: through(fence, path, needs)))  # type: ignore[misc]
    best = min(bound)
    return {
        "file": path.name,
        "seconds": round(seconds, 2),
        "plain": {"seconds": round(best, 3), "times_real_time": round(seconds / best, 1)},
        "cases": {
            name: {
                "seconds": round(min(times), 3),
                "times_real_time": round(seconds / min(times), 1),
                "ratio": round(min(times) / best, 3),
            }
            for name, times in taken.items()
        },
    }


class Counted(HwDevices):
    """Devices that count the files they have decoded, and failed on."""

    def __init__(self, setting: str) -> None:
        super().__init__(setting)
        self.files = {"decoded": 0, "failed": 0}

    def record(self, name: str, worked: bool) -> None:
        super().record(name, worked)
        self.files["decoded" if worked else "failed"] += 1


def compare(path: Path, device: str, repeat: int) -> dict[str, object]:
    """The last case in software and on a device, in turn: best times, processor time and the frames."""
    needs = list(CASES.values())[-1]
    taken: dict[str, list[float]] = {"off": [], device: []}
    spent = dict.fromkeys(taken, 0.0)
    files = {"decoded": 0, "failed": 0}
    frames: dict[str, list[Frames]] = {}
    for _ in range(repeat):
        for setting in taken:
            devices, begun = Counted(setting), time.perf_counter()
            used = resource.getrusage(resource.RUSAGE_CHILDREN)
            with Fence(devices=devices) as fence:
                windows = list(fence.stream(path, needs))
            taken[setting].append(time.perf_counter() - begun)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            spent[setting] += after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime
            files = {kind: count + devices.files[kind] for kind, count in files.items()}
            frames[setting] = [
                part for window in windows for part in window.parts if isinstance(part, Frames)
            ]
    largest = max(
        int(np.abs(a.images.astype(np.int16) - b.images).max(initial=0))
        for a, b in zip(*frames.values(), strict=True)
    )
    return {
        "files": files,
        "seconds": {setting: round(min(times), 3) for setting, times in taken.items()},
        "cpu_seconds": {setting: round(total / repeat, 3) for setting, total in spent.items()},
        "ratio": round(min(taken[device]) / min(taken["off"]), 3),
        "largest_difference": largest,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("paths", nargs="*", type=Path, help="videos or folders; default: a synthetic video")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=60, help="length of the synthetic video")
    parser.add_argument("--height", type=int, default=720, help="height of the synthetic video")
    parser.add_argument("--hwaccel", choices=list(DEVICES), help="compare this device with software")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, Fence() as fence:
        files = [f for p in arguments.paths for f in (sorted(p.iterdir()) if p.is_dir() else [p])]
        if not files:
            files = [synthetic(Path(folder) / "synthetic.mp4", arguments.seconds, arguments.height)]
        results = []
        for file in files:
            try:
                results.append(measure(file, fence, arguments.repeat))
                if arguments.hwaccel:
                    results[-1][arguments.hwaccel] = compare(file, arguments.hwaccel, arguments.repeat)
            except MediaError as error:
                results.append({"file": file.name, "refused": str(error)})
    print(json.dumps({"cores": os.cpu_count(), "results": results}, indent=1))


if __name__ == "__main__":
    main()
