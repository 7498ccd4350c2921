"""Calls on workers: order, errors, events, and workers that die. The same on Ray in `test_ray.py`."""

import os
import threading
import time

import pytest
from tests.workers import calls

from wordreel.errors import WordreelError
from wordreel.workers.executor import (
    ATTEMPTS,
    STARTS,
    CallFailed,
    Executor,
    Outcome,
    WorkerLost,
    open_executor,
)
from wordreel.workers.local_worker import LocalWorker, local_executor


class HereWorker:
    """Runs calls in this process; `losses` calls are lost first."""

    def __init__(self, losses: list[bool]) -> None:
        self.losses, self.stopped = losses, False

    def wait_ready(self) -> None:
        pass

    def call(self, function, args, on_event) -> Outcome:
        if self.losses:
            raise WorkerLost("gone", node_lost=self.losses.pop(0))
        return Outcome.of(function, *args, **({"report": on_event} if on_event else {}))

    def stop(self) -> None:
        self.stopped = True


@pytest.fixture(scope="module")
def processes():
    with open_executor("local", 2) as executor:
        yield executor


def test_map_keeps_the_order(processes):
    assert list(processes.map(calls.late_square, ((n,) for n in range(20)))) == [n * n for n in range(20)]


def test_an_error_reaches_the_caller_and_the_worker_lives_on(processes):
    for _ in range(3):
        with pytest.raises(ValueError, match="what a pity"):
            processes.run(calls.fail, "what a pity")
    assert processes.run(calls.late_square, 3) == 9


def test_events_arrive_in_order(processes):
    events: list[int] = []
    assert processes.run(calls.count_to, 5, on_event=events.append) == 5
    assert events == [0, 1, 2, 3, 4]


def test_a_call_whose_process_dies_runs_again(processes, tmp_path):
    assert processes.run(calls.die_once, tmp_path / "died", 7) == 7
    assert (tmp_path / "died").exists()


def test_a_deadly_call_is_given_up_and_the_others_go_on(processes):
    with pytest.raises(CallFailed, match=f"died {ATTEMPTS} times"):
        processes.run(calls.die)
    assert list(processes.map(calls.late_square, [(1,), (2,), (3,)])) == [1, 4, 9]


def test_lost_nodes_do_not_count_against_a_call():
    losses = [True] * 10 + [False] * (ATTEMPTS - 1)
    with Executor(lambda number: HereWorker(losses), 1) as executor:
        assert executor.run(calls.late_square, 4) == 16
    assert losses == []


def test_a_callback_that_raises_stops_its_worker():
    workers: list[object] = []

    class OffDuty:
        def wait_ready(self) -> None: ...
        def stop(self) -> None:
            workers.append(self)

        def call(self, function, args, on_event) -> Outcome:
            on_event(1)
            raise AssertionError

    with Executor(lambda number: OffDuty(), 1) as executor, pytest.raises(ZeroDivisionError):
        executor.run(calls.count_to, 1, on_event=lambda step: 1 / 0)
    assert workers


def test_workers_that_never_start_are_an_error_for_every_call():
    starts: list[int] = []

    def start(number: int) -> HereWorker:
        starts.append(number)
        raise OSError("no such host")

    with Executor(start, 1) as executor:
        for _ in range(2):
            with pytest.raises(WordreelError, match="no worker starts: no such host"):
                executor.run(calls.late_square, 1)
    assert len(starts) == STARTS


def test_a_closed_executor_refuses_calls():
    executor = local_executor(1)
    executor.run(calls.late_square, 1)
    executor.close()
    with pytest.raises(RuntimeError, match="closed"):
        executor.run(calls.late_square, 1)


def test_a_cancelled_call_is_lost_and_gets_its_environment():
    worker = LocalWorker({**os.environ, "WORDREEL_TEST": "here"})
    worker.wait_ready()
    assert worker.call(os.getenv, ("WORDREEL_TEST",), None).value == "here"
    threading.Timer(0.2, worker.cancel, (30.0,)).start()
    with pytest.raises(WorkerLost, match="status -15"):
        worker.call(time.sleep, (600,), None)
    worker.stop()
