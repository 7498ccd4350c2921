"""How much memory `add` takes for inputs that are large in one way, against a bound of 1.5 GB.

    python benchmarks/add_memory.py CLIPS [--seconds 30] [--hours 3] [--footage FOLDER] [--out FILE.json]

Adds, one after the other and with all default experts, footage in HEVC assembled from the clips of a folder
(`benchmarks/footage.py`; some seconds, repeated) in 4K, two files of it at once, and in 8K; and hours of
synthetic sound (AAC, mono, a minute repeated), in one file and in two.
The peak is that of `add` and its decoders together, pages that they share counted once; `peak_of_bound` is
its share of 1.5 GB. `--footage` keeps the files for the next run. `--out` also writes a table.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
from add import HERE, run_checkout
from footage import SOUND, assemble

BOUND = 1536  # MB
MADE = 60.0  # seconds of sound, which are repeated
ENCODED = {2160: 4.0, 4320: 1.0}  # seconds of pictures of this height, likewise
GAP = 0.1  # seconds between two repetitions, so that no packet comes before the last one
PIECE = 1024  # samples that AAC encodes at once


def synthetic_sound(path: Path) -> None:
    """Bursts of three tones that glide, in noise, with pauses: neither silence nor one steady sound."""
    part = path.with_suffix(".part.mp4")
    with av.open(str(part), "w") as film:
        stream = film.add_stream("aac", rate=SOUND, layout="mono")
        for number, samples in enumerate(_pieces()):
            frame = av.AudioFrame.from_ndarray(samples[None], format="fltp", layout="mono")
            frame.sample_rate, frame.pts, frame.time_base = SOUND, number * PIECE, Fraction(1, SOUND)
            film.mux(stream.encode(frame))
        film.mux(stream.encode(None))
    part.rename(path)


def _pieces() -> Iterator[Any]:
    rng = np.random.default_rng(0)
    noise = (0.02 * rng.normal(size=PIECE)).astype(np.float32)
    for number in range(int(MADE * SOUND / PIECE)):
        second = number * PIECE / SOUND
        samples = noise.copy()
        if second % 4 < 3:  # three seconds of tones, one of noise
            at = np.arange(PIECE, dtype=np.float32) / SOUND
            for tone in (1, 2, 3):
                pitch = tone * (150 + 50 * np.sin(second))
                samples += (0.2 / tone * np.sin(2 * np.pi * pitch * at)).astype(np.float32)
        yield samples


def repeat(part: Path, path: Path, seconds: float) -> None:
    """Write the packets of a file again and again: encoding 4K takes many times as long as adding it."""
    made = path.with_suffix(".part.mp4")
    with av.open(str(made), "w") as film, av.open(str(part)) as first:
        streams = {stream.index: film.add_stream_from_template(stream) for stream in first.streams}
        written = 0.0
        while written < seconds:
            with av.open(str(part)) as source:
                length = float(source.duration or 0) / av.time_base
                for packet in source.demux():
                    if packet.dts is None or packet.pts is None:
                        continue
                    shift = int(written / packet.time_base)
                    packet.pts, packet.dts = packet.pts + shift, packet.dts + shift
                    packet.stream = streams[packet.stream.index]
                    film.mux(packet)
            written += length + GAP
    made.rename(path)


def gather(options: argparse.Namespace, folder: Path) -> dict[str, list[Path]]:
    """What each input is called, and its files."""
    clips = sorted(
        path for path in options.clips.iterdir() if path.suffix in (".mp4", ".webm", ".mkv", ".avi")
    )
    folder.mkdir(parents=True, exist_ok=True)

    def film(height: int, seconds: float) -> Path:
        path, part = folder / f"{height}_{seconds:g}.mp4", folder / f"{height}_part.mp4"
        if not part.exists():
            assemble(clips[3::7] + clips, part, ENCODED[height], height, "hevc")
        if not path.exists():
            repeat(part, path, seconds)
        return path

    def sound(hours: float) -> Path:
        path, part = folder / f"sound_{hours:g}.mp4", folder / "sound_part.mp4"
        if not part.exists():
            synthetic_sound(part)
        if not path.exists():
            repeat(part, path, 3600 * hours)
        return path

    seconds, hours = options.seconds, options.hours
    return {
        f"{seconds:g} s of 4K HEVC": [film(2160, seconds)],
        f"2 files of {seconds:g} s of 4K HEVC": [film(2160, seconds), film(2160, seconds + 5)],
        f"{seconds / 2:g} s of 8K HEVC": [film(4320, seconds / 2)],
        f"{hours:g} h of sound": [sound(hours)],
        f"2 files of {hours / 2:g} h of sound": [sound(hours / 2), sound(hours / 2 + 0.1)],
    }


def table(result: dict[str, Any]) -> str:
    """The result as Markdown."""
    lines = ["| input | peak MB | share of 1.5 GB | × real time |", "|---|--:|--:|--:|"]
    lines += [
        f"| {name} | {row['peak_mb']} | {row['peak_of_bound']} | {row['times_real_time']} |"
        for name, row in result["inputs"].items()
    ]
    about = f"{result['cores']} cores, load average {result['load_average']} at the end."
    return "\n".join(["Made by `benchmarks/add_memory.py`; " + about, "", *lines]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("clips", type=Path)
    parser.add_argument("--seconds", type=float, default=30.0, help="of footage; half of it in 8K")
    parser.add_argument("--hours", type=float, default=3.0, help="of sound")
    parser.add_argument("--footage", type=Path, help="keep the files here")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    found = {}
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        for number, (name, paths) in enumerate(gather(options, options.footage or root / "made").items()):
            folder = root / f"input{number}"
            folder.mkdir()
            for path in paths:
                (folder / path.name).symlink_to(path.resolve())
            run = run_checkout(HERE, folder, root / f"library{number}")
            found[name] = {
                "peak_mb": round(run["peak_mb"]),
                "peak_of_bound": round(run["peak_mb"] / BOUND, 2),
                "times_real_time": round(run["media"] / run["seconds"], 2),
            }
            print(name, found[name], flush=True)
    result = {
        "cores": len(os.sched_getaffinity(0)),
        "load_average": round(os.getloadavg()[0], 1),
        "inputs": found,
    }
    print(json.dumps(result, indent=2))
    if options.out:
        options.out.write_text(json.dumps(result, indent=2) + "\n")
        options.out.with_suffix(".md").write_text(table(result))


if __name__ == "__main__":
    main()
