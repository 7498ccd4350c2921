"""The state machine of a library: some examples in every run, and many more by `make test-properties`.

`library_machine.py` asserts, after each command of two processes:

- the library holds the files of the disk, no other ones, and those that are removed do not return;
- a search answers as a new library of the same files, with each video once;
- an id of a clip or a query stands for one thing for ever;
- beside a process that writes, another reads what was before or is there already, and is refused to write.

The first tests here break each of these, and the machine must notice.
"""

import os
import time

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.properties.library_machine import HERE, LibraryMachine, Second, totals
from tests.properties.report import write_report

QUIET = list(HealthCheck)
EVERY_COMMAND = {"add", "remove", "search", "use", "reindex", "compact", "restart", "build_bank", "backup"}


@pytest.fixture(autouse=True, scope="module")
def _second_process():
    yield
    Second.kill()


@pytest.fixture
def machine():
    """A machine with a library of two films."""
    machine = LibraryMachine()
    machine.start(seeds=[0, 1])
    machine.sound()
    yield machine
    machine.teardown()


class First:
    """Draws what stands first: here the bank `everyday`."""

    def draw(self, strategy):
        return "everyday"


def search(machine):
    machine.search(side=HERE, text="red", norm="none", moments=False, data=First())


def test_a_removed_film_that_stays_is_noticed(machine, monkeypatch):
    monkeypatch.setattr(machine.here, "remove", lambda name: [name])
    machine.remove(side=HERE, name="a.mp4")
    with pytest.raises(AssertionError):
        machine.sound()


def test_a_changed_film_that_is_not_added_again_is_noticed(machine, monkeypatch):
    monkeypatch.setattr(machine.here, "add", lambda: {"failed": 0})
    machine.write_file(name="a.mp4", seed=3, seconds=45.0)
    with pytest.raises(AssertionError):
        machine.add(side=HERE)


def test_hits_that_are_doubled_missing_or_ranked_otherwise_are_noticed(machine, monkeypatch):
    search(machine)
    right = machine.here.search

    for wrong in (
        lambda hits: [hits[0], *hits],
        lambda hits: hits[:-1],
        lambda hits: [[*hit[:4], hit[4] + 0.01, hit[5]] for hit in hits],
        lambda hits: [[*hit[:4], hit[4], 0.99] for hit in hits],
    ):
        with monkeypatch.context() as patch:
            patch.setattr(machine.here, "search", lambda *given, wrong=wrong: wrong(right(*given)))
            with pytest.raises(AssertionError):
                search(machine)
    search(machine)


def test_an_id_that_is_used_again_is_noticed(machine, monkeypatch):
    ids = machine.here.ids()
    number = min(ids["clips"])
    other = {**ids, "clips": {**ids["clips"], number: ["another film", 0.0, 1.0, False]}}
    monkeypatch.setattr(machine.here, "ids", lambda: other)
    with pytest.raises(AssertionError):
        machine.check_ids()


def test_a_second_writer_that_is_not_refused_is_noticed(machine, monkeypatch):
    monkeypatch.setattr(machine.here, "add", lambda: {"failed": 0})
    with pytest.raises(pytest.fail.Exception, match="LibraryBusy"):
        machine.write_beside(after=0, do="add", kill=False, model="colours", text="red")


def test_some_examples():
    bounded = settings(max_examples=6, stateful_step_count=25, suppress_health_check=QUIET)
    totals.clear()
    run_state_machine_as_test(LibraryMachine, settings=bounded)
    assert totals.keys() >= EVERY_COMMAND
    assert totals["pauses"] > 0  # one process wrote while the other looked


@pytest.mark.slow
def test_many_examples(monkeypatch, capsys):
    """As long as `WORDREEL_PROPERTY_MINUTES` says: other examples in every run, with kills among them."""
    monkeypatch.setattr(LibraryMachine, "kills", True)
    minutes = float(os.environ.get("WORDREEL_PROPERTY_MINUTES", "2"))
    began = time.monotonic()
    many = settings(
        max_examples=25,
        stateful_step_count=60,
        derandomize=False,
        database=None,
        report_multiple_bugs=False,
        suppress_health_check=QUIET,
    )
    totals.clear()
    while time.monotonic() < began + 60 * minutes:
        run_state_machine_as_test(LibraryMachine, settings=many)
        with capsys.disabled():
            print(", ".join(f"{count} {what}" for what, count in totals.most_common()), flush=True)
        write_report(totals, time.monotonic() - began)
    assert totals.keys() >= EVERY_COMMAND
