"""Stop every operation of a library at every write, rename and flush, and write what came of it.

python -m tests.crash --jobs 2 --out results/crash
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.crash.faults import compile_faults, preload

ROOT = Path(__file__).parents[2]
MEMORY = Path("/dev/shm")  # noqa: S108 - a flush costs nothing there


def run_operations(
    names: Sequence[str], sample: int, jobs: int = 1, on_result: Callable[[Any], None] | None = None
) -> list[Any]:
    """What came of each operation, in their order; `sample` trials of each, or all of them if it is 0."""
    folder = Path(tempfile.mkdtemp(prefix="wordreel-crash-", dir=MEMORY if MEMORY.is_dir() else None))
    try:
        library = compile_faults(folder)
        shares = [[name] for name in names] if jobs > 1 else [list(names)]

        def work(number: int) -> list[Any]:
            own = folder / str(number)
            own.mkdir()
            command = [sys.executable, "-m", "tests.crash.worker", str(own), str(sample), *shares[number]]
            found = []
            with subprocess.Popen(
                command, cwd=ROOT, env=preload(library), stdout=subprocess.PIPE, text=True
            ) as process:
                assert process.stdout is not None
                for line in process.stdout:
                    found.append(json.loads(line))
                    if on_result:
                        on_result(found[-1])
            if process.returncode:
                raise RuntimeError(f"the worker of {shares[number]} ended with status {process.returncode}")
            shutil.rmtree(own)
            return found

        with ThreadPoolExecutor(jobs) as pool:
            return [one for some in pool.map(work, range(len(shares))) for one in some]
    finally:
        shutil.rmtree(folder)


def failures(results: Sequence[Any]) -> list[str]:
    return [text for one in results for tally in one["kinds"].values() for text in tally["failures"]]
