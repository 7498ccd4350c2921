"""Fuzz targets in this process, and print a report of each as a line of JSON.

    python -m tests.fuzz.worker --seconds 60 --seed 1 TARGET …

`python -m tests.fuzz` starts one for each target; an input that kills it is in the file that `--last` names.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

from tests.fuzz.engine import SOURCE, Fuzzer
from tests.fuzz.targets import TARGETS
from tests.fuzz.watch import Lines, Watch, bound_memory

MOST_MEMORY = 3 << 30  # bytes of data of this process


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="+", choices=list(TARGETS), metavar="TARGET")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--few", action="store_true", help="the cases of `make test`, not guided by coverage")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--last", type=Path, help="where the input of the case that runs is written")
    given = parser.parse_args()
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    bound_memory(MOST_MEMORY)
    memory = Path("/dev/shm")  # noqa: S108 - a file system in memory, where flushing costs nothing
    parent = memory if os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="wordreel-fuzz-", dir=parent) as name:
        folder = Path(name)
        os.environ.update(HOME=name, TMPDIR=name, WORDREEL_WEIGHTS=f"{name}/weights", XDG_DATA_HOME=name)
        tempfile.tempdir = name
        lines = Lines(SOURCE)
        for target in given.targets:
            if TARGETS[target].guided and not given.few:
                lines.trace()
            (folder / target).mkdir()
            watch = Watch(folder, TARGETS[target].programs)
            watch.install()
            fuzzer = Fuzzer(TARGETS[target], folder / target, lines, watch)
            lines.seen.clear()
            cases = TARGETS[target].few if given.few else sys.maxsize
            report = fuzzer.run(given.seed, cases, given.seconds, _last(given.last))
            print(json.dumps(report.to_json()), flush=True)


def _last(path: Path | None) -> Callable[[bytes], object]:
    """Writes each input before it runs: cheap, for the file stays open."""
    if path is None:
        return lambda data: None
    file = path.open("wb", buffering=0)

    def write(data: bytes) -> None:
        file.seek(0)
        file.write(data)
        file.truncate()

    return write


if __name__ == "__main__":
    main()
