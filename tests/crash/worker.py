"""Run operations in a process with fault points: one line of JSON for each on standard output.

Started by `run.py` with `faults.c` preloaded: `python -m tests.crash.worker FOLDER SAMPLE NAME…`. A SAMPLE of
0 tries every point in every way, another number so many of them, evenly spread.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TypeVar

from tests.crash.annotations import ANNOTATING
from tests.crash.experiment import Experiment, warm_up
from tests.crash.operations import OPERATIONS
from tests.crash.publication import WITH_POSTGRESQL

T = TypeVar("T")


def spread(items: Sequence[T], most: int) -> list[T]:
    """At most so many of the items, evenly spread; all of them if `most` is 0."""
    if not most or len(items) <= most:
        return list(items)
    return [items[(2 * n + 1) * len(items) // (2 * most)] for n in range(most)]


def main(folder: Path, sample: int, names: Sequence[str]) -> None:
    warm_up(folder / "warm")
    for operation in (*OPERATIONS, *ANNOTATING, *WITH_POSTGRESQL):
        if operation.name in names:
            began = time.monotonic()
            experiment = Experiment(operation, folder / "experiment")
            trials = experiment.trials()
            tallies = experiment.run(spread(trials, sample))
            found = {
                "operation": operation.name,
                "points": len(experiment.calls),
                "faults": len(trials),
                "states": len(experiment.reference.states),
                "seconds": round(time.monotonic() - began, 1),
                "kinds": {kind: asdict(tally) for kind, tally in tallies.items()},
            }
            sys.stdout.write(json.dumps(found) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
