"""The fuzzer finds what it is for."""

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from tests.fuzz import mutations
from tests.fuzz.engine import SOURCE, Broken, Fuzzer, Session, Target
from tests.fuzz.watch import Hang, Lines, Watch, processor_time

from wordreel.errors import LibraryError


def fuzz(tmp_path, run, cases=20, memory=64 << 20):
    """The report of a target, with coverage and outside events left out."""
    target = Target("t", "a test", lambda folder: Session([b"good"], run), memory=memory)
    return Fuzzer(target, tmp_path, Lines(SOURCE), Watch(tmp_path, False)).run(
        1, cases, 60.0, lambda data: None
    )


def refuse(data):
    if data != b"good":
        raise LibraryError("not good")


def test_errors_of_wordreel_are_refusals(tmp_path):
    report = fuzz(tmp_path, refuse)
    assert (report.cases, report.accepted + report.refused, report.findings) == (21, 21, [])
    assert report.refused > 10


def test_other_errors_are_findings_by_their_place(tmp_path):
    def run(data):
        if data != b"good":
            int("x") if len(data) % 2 else {}["x"]

    report = fuzz(tmp_path, run, 60)
    assert {finding.where.split()[0] for finding in report.findings} == {"ValueError", "KeyError"}
    assert sum(finding.times for finding in report.findings) == report.refused
    assert all(bytes.fromhex(finding.input) != b"good" for finding in report.findings)


@pytest.mark.parametrize("error", [LibraryError(" "), LibraryError("x" * 5000), Broken("wrong hits")])
def test_empty_and_endless_messages_and_wrong_answers_are_findings(tmp_path, error):
    def run(data):
        if data != b"good":
            raise error

    assert len(fuzz(tmp_path, run).findings) == 1


def test_a_refused_seed_is_a_finding(tmp_path):
    def run(data):
        raise LibraryError("no")

    assert "seed" in {finding.where for finding in fuzz(tmp_path, run, 1).findings}


def test_memory_is_a_finding(tmp_path, monkeypatch):
    peak = [0]
    monkeypatch.setattr("tests.fuzz.engine.peak_memory", lambda: peak[0])

    def run(data):
        if data != b"good":
            peak[0] += 100 << 20

    assert {finding.where for finding in fuzz(tmp_path, run, 2).findings} == {"memory"}


PEAK = """
import numpy as np
from tests.fuzz.watch import forget_peak, peak_memory

np.ones(300 << 17).sum()
forget_peak()
before = peak_memory()
np.ones(100 << 17).sum()
print(peak_memory() - before >> 20)
"""


def test_the_peak_is_that_since_it_was_forgotten():
    """In a process of its own: this one may free what other tests left while the array is there."""
    root = Path(__file__).parents[2]
    ran = subprocess.run([sys.executable, "-c", PEAK], cwd=root, capture_output=True, text=True, timeout=120)
    assert int(ran.stdout) >= 60, ran.stderr  # MiB of the 100 that were taken


def test_processor_time_is_bounded_whatever_is_swallowed():
    def swallow():
        while True:
            with suppress(Exception):
                sum(range(1000))

    with pytest.raises(Hang), processor_time(0.05):
        swallow()


def test_what_happens_outside_is_heard(tmp_path):
    watch = Watch(tmp_path, programs=False)
    watch.hear("open", ("/etc/x", "w", os.O_WRONLY))
    watch.start()
    folder = os.open(tmp_path, os.O_RDONLY)
    for event, arguments in (
        ("open", (str(tmp_path / "a"), "w", os.O_WRONLY | os.O_CREAT)),
        ("open", ("/etc/passwd", "r", os.O_RDONLY)),
        ("os.remove", ("a", folder)),
        ("socket.connect", (None, ("127.0.0.1", 80))),
    ):
        watch.hear(event, arguments)
    assert watch.stop() == []
    os.close(folder)
    watch.start()
    watch.hear("open", (f"{tmp_path}/../../x", "w", os.O_WRONLY | os.O_CREAT))
    watch.hear("os.rename", (str(tmp_path / "a"), "/etc/a", -1, -1))
    watch.hear("socket.connect", (None, ("192.0.2.1", 80)))
    watch.hear("subprocess.Popen", ("sh", ["sh"], None, None))
    assert len(watch.stop()) == 4


@pytest.mark.parametrize("mutate", [mutations.mutate_bytes, mutations.mutate_text, mutations.mutate_json])
def test_the_same_seed_gives_the_same_inputs(mutate):
    data = b'{"a": [1, 2.5, "x"], "b": null}'

    def inputs():
        rng = Random(3)
        return [mutate(rng, data, [data]) for _ in range(50)]

    assert inputs() == inputs()
    assert len(set(inputs())) > 25
