"""Progress of long work, on a terminal, in a log and for programs."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from wordreel.cli.console import show_progress as module
from wordreel.cli.console.show_progress import show_progress, shown
from wordreel.cli.manage.add import describe
from wordreel.ingest.add_report import AddProgress
from wordreel.progress import Progress


class Clock:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


def adding(done: int, seconds: float) -> AddProgress:
    return AddProgress(
        "adding files",
        done,
        4,
        bytes_done=10.0 * done,
        bytes_total=40,
        media_seconds=2 * seconds,
        seconds=seconds,
    )


def test_a_script_gets_a_line_every_ten_seconds(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with show_progress(False, describe) as on_progress:
        for second in range(0, 25, 5):
            clock.now = 100.0 + second
            on_progress(adding(1 + second // 10, 1.0 + second))
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.splitlines() == [
        "Adding: 2/4 files, 11/min, 2.0× real time, 11 s left",
        "Adding: 3/4 files, 9/min, 2.0× real time, 7 s left",
    ]


def test_there_is_no_rate_before_the_first_file_is_done() -> None:
    now = AddProgress("adding files", 0, 4, bytes_done=1.0, bytes_total=40, media_seconds=0.0, seconds=12.0)
    assert describe(now).note == "0/4 files"


def test_short_work_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with show_progress(False) as on_progress:
        on_progress(Progress("embedding clips", 1, 1))
    assert capsys.readouterr().err == ""


def test_programs_get_the_first_and_last_of_a_stage_and_one_a_second(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    with show_progress(True) as on_progress:
        for step in range(1, 9):
            clock.now = 100.0 + 0.4 * step
            on_progress(Progress("embedding clips", step, 8))
    rows = [json.loads(line)["progress"] for line in capsys.readouterr().err.splitlines()]
    assert [row["done"] for row in rows] == [1, 4, 7, 8]
    assert rows[0] == {"stage": "embedding clips", "done": 1, "total": 8}


def test_json_has_all_that_an_add_knows(capsys: pytest.CaptureFixture[str]) -> None:
    with show_progress(True) as on_progress:
        on_progress(adding(2, 3.0))
    (line,) = capsys.readouterr().err.splitlines()
    told = json.loads(line)["progress"]
    assert (told["bytes_done"], told["bytes_total"], told["failures"]) == (20.0, 40, 0)


def test_a_terminal_gets_one_bar_for_each_heading(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with show_progress(False, shown) as on_progress:
        on_progress(Progress("reading", 1, 2))
        on_progress(Progress("reading", 2, 2))
        on_progress(Progress("writing", 5, 9))
    reading, writing = capsys.readouterr().err.split("\r")[-1].splitlines()[:2]
    assert "Reading" in reading
    assert reading.endswith(" 2/2")
    assert "Writing" in writing
    assert writing.endswith(" 5/9")


def test_bars_that_never_start_print_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with show_progress(False):
        pass
    assert capsys.readouterr().err == ""
