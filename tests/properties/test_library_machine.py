"""The state machine of a library: some examples in every run, and many more by `make test-properties`."""

import os
import time

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.properties.library_machine import LibraryMachine, Second, totals

QUIET = list(HealthCheck)


@pytest.fixture(autouse=True, scope="module")
def _second_process():
    yield
    Second.kill()


def test_some_examples():
    bounded = settings(max_examples=6, stateful_step_count=25, suppress_health_check=QUIET)
    run_state_machine_as_test(LibraryMachine, settings=bounded)


@pytest.mark.slow
def test_many_examples(monkeypatch, capsys):
    """As long as `WORDREEL_PROPERTY_MINUTES` says: other examples in every run, with kills among them."""
    monkeypatch.setattr(LibraryMachine, "kills", True)
    end = time.monotonic() + 60 * float(os.environ.get("WORDREEL_PROPERTY_MINUTES", "2"))
    many = settings(
        max_examples=25,
        stateful_step_count=60,
        derandomize=False,
        database=None,
        report_multiple_bugs=False,
        suppress_health_check=QUIET,
    )
    totals.clear()
    while time.monotonic() < end:
        run_state_machine_as_test(LibraryMachine, settings=many)
        with capsys.disabled():
            print(", ".join(f"{count} {what}" for what, count in totals.most_common()), flush=True)
