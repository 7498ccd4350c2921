"""A bounded run of every fuzz target with a fixed seed, and of all inputs that were findings once.

`make fuzz SECONDS=1200` runs the same targets for longer.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.fuzz.targets import TARGETS

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def reports():
    """What one worker process says of every target; its errors where it died on the way."""
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.worker", *TARGETS, "--few"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
        timeout=1800,
    )
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return {report["target"]: report for report in found}, done.stderr


@pytest.mark.parametrize("name", TARGETS)
def test_only_errors_of_wordreel(name, reports):
    found, errors = reports
    assert name in found, errors[-3000:]
    assert found[name]["findings"] == []
    assert found[name]["cases"] > TARGETS[name].few
    assert found[name]["accepted"] > 0
