"""How many workers a server asks for, by a clock of the test's own."""

import math
import random

import pytest

from wordreel.serve import worker_demand
from wordreel.serve.worker_demand import FEW, QUIET, SECONDS, SEVERAL, WorkerDemand, most_workers


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


def asked(demand, clock, searches, seconds):
    """What is wanted at each half second of a steady load."""
    wanted = []
    for _ in range(int(2 * seconds)):
        wanted.append(demand.wanted(searches))
        clock.now += 0.5
    return wanted


def test_one_client_never_gets_a_worker_and_many_get_all_cores():
    clock = Clock()
    demand = WorkerDemand(4, clock)
    assert set(asked(demand, clock, 1, 600)) == {0}
    assert set(asked(demand, clock, 2, 600)) == {0}
    burst = asked(demand, clock, 16, 30)
    assert burst[0] == 0
    assert burst == sorted(burst)
    assert burst[-1] == 4
    assert asked(demand, clock, 3, 600)[-1] == 4, "as long as the load stays"
    quiet = asked(demand, clock, 0, QUIET + 30)
    assert quiet == sorted(quiet, reverse=True)
    assert (quiet[int(2 * QUIET) - 1], quiet[-1]) == (4, 0)
    assert asked(demand, clock, 3, 30)[-1] == 3, "a worker for each search at once"


def test_a_short_burst_and_a_pause_change_nothing():
    clock = Clock()
    demand = WorkerDemand(4, clock)
    for _ in range(100):  # four pictures of a page, every five seconds
        assert demand.wanted(4) == 0
        clock.now += 0.5
        asked(demand, clock, 0, 4.5)
    asked(demand, clock, 16, 10)
    for _ in range(10):
        assert asked(demand, clock, 0, QUIET - 10)[-1] == 4
        assert asked(demand, clock, 16, 5)[-1] == 4


def test_the_load_is_the_mean_over_the_past():
    """Against a sum over small steps."""
    rng, clock = random.Random(0), Clock()
    demand, history = WorkerDemand(64, clock), []
    for _ in range(60):
        searches, seconds = rng.randrange(12), rng.random() * 2
        history.append((clock.now, seconds, searches))
        demand.wanted(searches)
        clock.now += seconds
        demand.wanted(0)
        load, step = 0.0, 1e-3
        for start, length, count in history:
            for number in range(int(length / step)):
                past = clock.now - start - (number + 0.5) * step
                load += count * math.exp(-past / SECONDS) * step / SECONDS
        assert demand._load == pytest.approx(load, abs=0.02)


def test_workers_hold_a_part_of_the_memory(monkeypatch):
    monkeypatch.setattr(worker_demand, "cores", lambda: 16)
    sizes = {"SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(worker_demand.os, "sysconf", lambda name: sizes[name])
    found = []
    for gigabytes in (1, 4, 8, 64):
        sizes["SC_PHYS_PAGES"] = gigabytes * 2**30 // 4096
        found.append(most_workers())
        assert found[-1] == 1 or found[-1] * worker_demand.WORKER_BYTES * 4 <= gigabytes * 2**30
    assert found == [1, 5, 10, 16]
    assert FEW < SEVERAL
