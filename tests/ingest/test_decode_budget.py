"""Files of huge frames wait for one another."""

import threading

import pytest

from wordreel.ingest.file_processor import DecodeBudget


def test_a_file_waits_until_there_is_room():
    budget = DecodeBudget(20)
    waits, entered, leave = threading.Event(), threading.Event(), threading.Event()

    def other():
        with budget.hold(12, waits.set):
            entered.set()
            leave.wait(60)

    with budget.hold(8, lambda: None), budget.hold(12, lambda: None):
        assert budget.held == 20  # both fit
        thread = threading.Thread(target=other)
        thread.start()
        assert waits.wait(60)
        assert not entered.is_set()
    assert entered.wait(60)
    assert budget.held == 12
    leave.set()
    thread.join()
    assert budget.held == 0


def test_a_huge_file_goes_in_alone():
    budget = DecodeBudget(20)
    with budget.hold(1000, lambda: None):
        assert budget.held == 1000


def test_files_are_counted_until_they_release():
    budget = DecodeBudget(files=2)
    waits, entered = threading.Event(), threading.Event()

    def other():
        with budget.hold(1, waits.set):
            entered.set()

    with budget.hold(1, lambda: None), budget.hold(2, lambda: None) as release:
        thread = threading.Thread(target=other)
        thread.start()
        assert waits.wait(60)
        assert not entered.is_set()
        release()
        assert entered.wait(60)
        thread.join()
        release()  # once is enough
        assert budget.held == 1
    assert budget.held == 0


class Stopped(Exception):
    pass


def test_whoever_waits_can_be_stopped():
    budget = DecodeBudget(20)

    def stop():
        raise Stopped

    with budget.hold(20, lambda: None):
        with pytest.raises(Stopped), budget.hold(1, stop):
            pass
        assert budget.held == 20
        budget._turn.acquire()  # somebody else waits
        with pytest.raises(Stopped), budget.hold(1, stop):
            pass
        budget._turn.release()
    with budget.hold(20, stop):
        assert budget.held == 20
