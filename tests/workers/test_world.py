"""One world of processes on the workers of an executor."""

import pytest
from tests.workers import calls

pytest.importorskip("torch")

from wordreel.errors import TrainingError
from wordreel.workers.local_worker import local_executor
from wordreel.workers.world import run_world


@pytest.fixture(scope="module")
def executor():
    with local_executor(2) as made:
        yield made


@pytest.mark.slow
def test_a_world_that_loses_a_worker_starts_again(executor, tmp_path):
    marker, lines = tmp_path / "died", []
    printed = run_world(executor, calls.add_ranks, (marker, False), (marker, True), lines.append)
    assert printed == "total 3 of 2, resumed True\n"
    assert lines == ["a worker was lost; starting again from the last saved state", "line of 0"]


def test_an_error_ends_the_run(executor):
    with pytest.raises(TrainingError, match="no such recipe"):
        run_world(executor, calls.refuse, ("no such recipe",), ("again",), lambda line: None)
    assert executor.run(calls.late_square, 3) == 9
