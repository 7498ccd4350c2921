"""Stop every operation of a library at every write, rename and flush: `make test-crash`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from tests.crash.operations import OPERATIONS
from tests.crash.report import write_report
from tests.crash.run import failures, run_operations


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--only", action="append", metavar="OPERATION", help="may be given several times")
    parser.add_argument("--sample", type=int, default=0, help="trials of each operation; all by default")
    parser.add_argument("--jobs", type=int, default=1, help="operations at once")
    parser.add_argument("--out", type=Path, help="write the tables into this folder")
    arguments = parser.parse_args()
    names = [o.name for o in OPERATIONS if not arguments.only or o.name in arguments.only]

    def show(found: Any) -> None:
        tried = sum(tally["tried"] for tally in found["kinds"].values())
        lost = failures([found])
        print(f"{found['operation']}: {found['points']} points, {tried} faults, {len(lost)} not survived, "
              f"{found['seconds']} s", flush=True)  # fmt: skip
        for text in lost:
            print(text, file=sys.stderr, flush=True)

    results = run_operations(names, arguments.sample, arguments.jobs, show)
    if arguments.out:
        write_report(results, [], arguments.out)
    return 1 if failures(results) else 0


if __name__ == "__main__":
    sys.exit(main())
