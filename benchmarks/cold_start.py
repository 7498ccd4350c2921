"""The first search of a fresh process, against importing NumPy and onnxruntime alone.

    python benchmarks/cold_start.py LIBRARY [--rounds 15] [--before SRC] [--out FILE.json]

Each round starts the bound (`python -c "import numpy, onnxruntime"`), then `wordreel search` with words that
it has not seen, then that of another version if `--before` names its `src` folder. Files are in the page
cache, compiled modules on the disk. Seconds are medians over the rounds; CPU is of all threads.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

WARMUP = 2
THINGS = ("guitar", "horse", "cake", "river", "drum", "kitten", "train", "goal", "candle", "tower")
BOUND = "import numpy, onnxruntime"


def run(command: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Seconds by the clock and of the processor."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(library: Path, sources: dict[str, str], rounds: int) -> dict[str, dict[str, float]]:
    """Medians by program: the bound, and the search of each version."""
    times: dict[str, list[tuple[float, float]]] = {"bound": [], **{name: [] for name in sources}}
    with tempfile.TemporaryDirectory() as compiled:
        clean = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        clean["PYTHONPYCACHEPREFIX"] = compiled
        for number in range(-WARMUP, rounds):
            words = f"somebody near a {THINGS[number % len(THINGS)]}, number {number}"
            commands = {"bound": ([sys.executable, "-c", BOUND], clean)}
            search = [sys.executable, "-m", "wordreel", "search", words, "--library", str(library)]
            commands |= {name: (search, {**clean, "PYTHONPATH": path}) for name, path in sources.items()}
            for name, (command, environment) in commands.items():
                taken = run(command, environment)
                if number >= 0:
                    times[name].append(taken)
    return {
        name: {
            "seconds": round(statistics.median(one[0] for one in taken), 3),
            "cpu": round(statistics.median(one[1] for one in taken), 3),
        }
        for name, taken in times.items()
    }


def run_listing(library: Path, source: str) -> int:
    """How many videos the library has."""
    command = [sys.executable, "-m", "wordreel", "list", "--json", "--library", str(library)]
    environment = {**os.environ, "PYTHONPATH": source}
    return len(json.loads(subprocess.run(command, env=environment, check=True, capture_output=True).stdout))


def table(report: dict[str, Any]) -> str:
    """The report for people."""
    names = {"bound": "importing NumPy and onnxruntime", "search": "`wordreel search`", "before": "before"}
    rows = [
        f"| {names[name]} | {one['seconds']:.2f} | {one['cpu']:.2f} | {one['times the bound']:.2f} |"
        for name, one in report["programs"].items()
    ]
    return (
        "# The first search of a process\n\n"
        f"Made by `benchmarks/cold_start.py`: medians of {report['rounds']} rounds on {report['cores']} "
        f"cores, load {report['load']} at the start; a library of {report['videos']} files.\n\n"
        "| program | seconds | seconds of CPU | times the bound |\n|---|--:|--:|--:|\n"
        + "\n".join(rows)
        + "\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("library", type=Path)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--before", type=Path, help="the src folder of another version")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    sources = {"search": str(Path(__file__).parents[1] / "src")}
    if options.before is not None:
        sources["before"] = str(options.before)
    load = round(os.getloadavg()[0], 1)
    measured = measure(options.library, sources, options.rounds)
    bound = measured["bound"]
    listed = run_listing(options.library, sources["search"])
    report = {
        "rounds": options.rounds,
        "load": load,
        "videos": listed,
        "cores": len(os.sched_getaffinity(0)),
        "programs": {
            name: {**one, "times the bound": round(one["seconds"] / bound["seconds"], 2)}
            for name, one in measured.items()
        },
    }
    text = json.dumps(report, indent=2)
    print(text)
    if options.out is not None:
        options.out.write_text(text + "\n", "utf-8")
        options.out.with_suffix(".md").write_text(table(report), "utf-8")


if __name__ == "__main__":
    main()
