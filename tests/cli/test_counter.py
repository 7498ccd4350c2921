"""Progress without a terminal: a line now and then, on standard error."""

import pytest

from wordreel.cli.console import common, show_progress
from wordreel.progress import Progress


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(show_progress.time, "monotonic", lambda: now[0])
    return now


def test_a_line_every_ten_seconds(clock, capsys):
    moved = common.counter("queries")
    for second in range(35):
        clock[0] = float(second)
        moved(Progress("embedding queries", second, 35))
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == ["10/35 queries", "20/35 queries", "30/35 queries"]


def test_one_line_of_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr(common.sys.stderr, "isatty", lambda: True, raising=False)
    moved = common.counter("queries")
    moved(Progress("embedding queries", 1, 2))
    moved(Progress("embedding queries", 2, 2))
    assert capsys.readouterr().err == "\r1/2 queries\r2/2 queries\n"
