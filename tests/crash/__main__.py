"""Stop every operation of a library at every write, rename and flush: `make test-crash`.

Stop at any time; the same command resumes: `build/crash` holds the operations that are finished.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from tests.crash.annotations import ANNOTATING
from tests.crash.finished import FinishedOperations, commit
from tests.crash.operations import OPERATIONS
from tests.crash.publication import WITH_POSTGRESQL
from tests.crash.report import write_report
from tests.crash.run import ROOT, failures, run_operations
from tests.crash.server import has_postgresql, postgresql


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--only", action="append", metavar="OPERATION", help="may be given several times")
    parser.add_argument("--sample", type=int, default=0, help="faults of operations not tried as a whole yet")
    parser.add_argument("--jobs", type=int, default=1, help="operations at once")
    parser.add_argument("--out", type=Path, help="write the tables into this folder")
    arguments = parser.parse_args()
    servers = has_postgresql()
    operations = (*OPERATIONS, *ANNOTATING, *(WITH_POSTGRESQL if servers else ()))
    names = [one.name for one in operations if not arguments.only or one.name in arguments.only]
    finished = FinishedOperations(ROOT / "build" / "crash", arguments.sample)
    wholly = FinishedOperations(ROOT / "build" / "crash", 0)

    def show(found: Any) -> None:
        finished.add(found)
        tried = sum(tally["tried"] for tally in found["kinds"].values())
        lost = failures([found])
        print(f"{found['operation']}: {found['points']} points, {tried} faults, {len(lost)} not survived, "
              f"{found['seconds']} s", flush=True)  # fmt: skip
        for text in lost:
            print(text, file=sys.stderr, flush=True)

    left = [name for name in names if name not in finished and name not in wholly]
    if left != names:
        print(f"{len(names) - len(left)} operations were tried before", flush=True)
    with postgresql() if servers else nullcontext():
        run_operations(left, arguments.sample, arguments.jobs, show)
    results = [wholly[name] if name in wholly else finished[name] for name in names]
    if arguments.out:
        skipped = [] if servers else [one.name for one in WITH_POSTGRESQL]
        write_report(results, skipped, commit(), arguments.out)
    return 1 if failures(results) else 0


if __name__ == "__main__":
    sys.exit(main())
