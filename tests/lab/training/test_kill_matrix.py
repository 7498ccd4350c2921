"""Killed anywhere and resumed, a run on a CPU ends with the bits of one that was not: whatever is trained.

Compared are the last and the best model, the logs, and the state with the optimiser in it; a finished run
that is resumed takes no step. `killing` says where runs die: in steps, in the middle of files, between two of
them, while measuring, at any millisecond.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.lab.training import kill_cases

FEW = [
    "ce released ranger exponential margin",
    "mmt paper radam cosine diagonal",
    "by source",
    "many settings",
    "world dropout",
    "text lr ranger",
    "float16",
    "patience seldom",
    "transcripts window until",
]


def killed(folder, names, kills, seed=0, limit=300):
    """What `killing` found, a dictionary for each case."""
    root = Path(__file__).parents[3]
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")]),
        "OMP_NUM_THREADS": "1",
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
    }
    script = [sys.executable, "-W", "ignore", str(Path(__file__).with_name("killing.py"))]
    done = subprocess.run(
        [*script, str(folder), str(seed), str(kills), *names],
        cwd=root,
        env=env,
        capture_output=True,
        text=True,
        timeout=limit,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert [one["case"] for one in found] == list(names)
    assert [one for one in found if one["differ"]] == [], done.stderr[-3000:]
    return found


def test_some_of_everything(tmp_path):
    report = killed(tmp_path, FEW, kills=2)
    assert sum(len(one["killed"]) for one in report) >= 2 * len(FEW) - 2


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_models_optimisers_schedules_and_losses(tmp_path, seed):
    report = killed(tmp_path, kill_cases.crossed(), 6, seed, limit=900)
    assert sum(len(one["killed"]) for one in report) >= 5 * len(report)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_everything_else_training_can_do(tmp_path, seed):
    report = killed(tmp_path, kill_cases.FEATURES, 6, seed, limit=900)
    assert sum(len(one["killed"]) for one in report) >= 5 * len(report)


@pytest.mark.slow
def test_several_processes(tmp_path):
    killed(tmp_path, kill_cases.WORLDS, 5, limit=900)


@pytest.mark.slow
def test_compiled_steps(tmp_path):
    killed(tmp_path, kill_cases.COMPILED, 6, limit=1800)
