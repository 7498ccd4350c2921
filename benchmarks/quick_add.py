"""How fast the quick pass of `wordreel add` is on 1080p footage with sound.

    python benchmarks/quick_add.py CLIPS [--seconds 180] [--each 60] [--footage FOLDER] [--thorough]
                                   [--out FILE.json]

CLIPS is a folder of videos with sound. `footage` scales them up and joins them to files of `--each`
seconds, with key frames where x264 puts them (at each cut it sees and at least every 250 frames, here 10 s),
until there are `--seconds` in all; `--footage` keeps them for the next run. A library that has looked at one
small clip, so that its model and its bank are there, then takes a quick look at them. The result is JSON on
standard output: `times_real_time` is seconds of media over seconds of the pass, with loading the experts and
embedding; `cpu_seconds` are those of this process and its decoders, and `times_real_time_of_cpu` is what two
cores that do nothing else could reach at best. With `--thorough` the thorough pass of the same library
follows, and `ratio` is how much longer it takes.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from footage import assemble

from wordreel import Library
from wordreel.catalogue.passes import Pass
from wordreel.util.machine import cores


def footage(clips: Sequence[Path], folder: Path, seconds: float, each: float) -> None:
    """Files of `each` seconds until there are `seconds`, unless they are there already."""
    folder.mkdir(parents=True, exist_ok=True)
    at = 0
    for number in range(round(seconds / each)):
        path = folder / f"{number:03}.mp4"
        if not path.exists():
            assemble([*clips[at:], *clips], path, each, 1080, "h264")
        at = (at + 5) % len(clips)


@contextmanager
def measured(into: dict[str, Any]) -> Iterator[None]:
    """Seconds of the clock, and of all processors that this process and its children used."""
    kinds = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
    begun, before = time.perf_counter(), [resource.getrusage(kind) for kind in kinds]
    yield
    after = [resource.getrusage(kind) for kind in kinds]
    into["seconds"] = time.perf_counter() - begun
    into["cpu_seconds"] = sum(
        (b.ru_utime - a.ru_utime) + (b.ru_stime - a.ru_stime) for a, b in zip(before, after, strict=True)
    )


def run(library: Library, folder: Path, name: Pass) -> dict[str, Any]:
    """One pass over the footage."""
    result: dict[str, Any] = {"pass": name}
    with measured(result):
        report = library.add(folder, passes=[name])
    media = report.media_seconds
    result |= {"files": len(report.added) + len(report.updated), "media_seconds": media}
    result["times_real_time"] = media / result["seconds"]
    result["times_real_time_of_cpu"] = 2 * media / result["cpu_seconds"]
    return result


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("clips", type=Path)
    parser.add_argument("--seconds", type=float, default=180.0)
    parser.add_argument("--each", type=float, default=60.0)
    parser.add_argument("--footage", type=Path)
    parser.add_argument("--thorough", action="store_true")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.footage or Path(scratch) / "footage"
        clips = sorted(given.clips.rglob("*.mp4"))
        footage(clips, folder, given.seconds, given.each)
        with Library(Path(scratch) / "library") as library:
            library.add(clips[0], passes=["quick"])
            load = round(os.getloadavg()[0], 1)
            result: dict[str, Any] = {"cores": cores(), "load_average": load}
            result["quick"] = run(library, folder, "quick")
            if given.thorough:
                result["thorough"] = run(library, folder, "thorough")
                result["ratio"] = result["thorough"]["seconds"] / result["quick"]["seconds"]
    text = json.dumps(result, indent=1)
    print(text)
    if given.out:
        given.out.parent.mkdir(parents=True, exist_ok=True)
        given.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
