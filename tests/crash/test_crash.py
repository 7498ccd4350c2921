"""A sample of the fault points of every operation; `make test-crash` tries all of them."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest
from tests.crash.annotations import ANNOTATING
from tests.crash.disk import LOST, Disk, write_tree
from tests.crash.experiment import KINDS, Tally
from tests.crash.faults import COMPILER, Call
from tests.crash.finished import FinishedOperations
from tests.crash.operations import OPERATIONS
from tests.crash.report import as_markdown
from tests.crash.run import failures, run_operations

SAMPLE = 2  # trials of each operation


@pytest.mark.skipif(COMPILER is None, reason="the fault points need a C compiler")
def test_operations_survive_a_sample_of_their_fault_points():
    names = [operation.name for operation in (*OPERATIONS, *ANNOTATING)]
    results = run_operations(names, SAMPLE)
    assert [one["operation"] for one in results] == names
    assert failures(results) == []
    for one in results:
        assert one["points"] > 0
        assert sum(tally["tried"] for tally in one["kinds"].values()) == SAMPLE


def calls(root: Path, *given: tuple[str, ...]) -> list[Call]:
    """(kind, path, data or new path, offset) as recorded calls."""
    made = []
    for kind, path, *rest in given:
        other = str(root / rest[0]) if kind == "r" else ""
        data = rest[0].encode() if kind == "w" else b""
        made.append(Call(kind, str(root / path), other, int(rest[1]) if len(rest) > 1 else 0, data))
    return made


def test_what_is_not_flushed_may_be_lost(tmp_path):
    (tmp_path / "old").write_bytes(b"before")
    disk = Disk(tmp_path)
    for call in calls(tmp_path, ("c", "new"), ("w", "new", "after!"), ("r", "new", "old")):
        disk.apply(call)
    assert disk.tree() == {"old": b"after!"}
    assert disk.after_power_cut("everything") == {"old": b"before"}
    assert disk.after_power_cut("data") == {"old": b""}  # renamed before its data was flushed
    assert disk.after_power_cut("names") == {"old": b"before"}
    disk.apply(*calls(tmp_path, ("s", "old")))
    assert disk.after_power_cut("everything") == {"old": b"before"}
    assert disk.after_power_cut("data") == {"old": b"after!"}
    disk.apply(*calls(tmp_path, ("s", "")))
    for lost in LOST:
        assert disk.after_power_cut(lost) == {"old": b"after!"}


def test_overwritten_and_appended_data_is_lost_by_itself(tmp_path):
    (tmp_path / "log").write_bytes(b"one two")
    disk = Disk(tmp_path)
    for call in calls(tmp_path, ("w", "log", "TWO", "4"), ("w", "log", " 3", "7"), ("u", "log")):
        disk.apply(call)
    assert disk.tree() == {}
    assert disk.after_power_cut("everything") == {"log": b"one two"}
    assert disk.after_power_cut("names") == {"log": b"one TWO 3"}
    write_tree({"a": None, "a/b": b"c"}, tmp_path / "again")
    assert (tmp_path / "again" / "a" / "b").read_bytes() == b"c"


def test_a_stopped_run_resumes_behind_the_operations_that_it_finished(tmp_path):
    first = FinishedOperations(tmp_path, 0)
    assert "add" not in first
    first.add({"operation": "add", "points": 3})
    second = FinishedOperations(tmp_path, 0)
    assert second["add"] == {"operation": "add", "points": 3}
    assert "remove" not in second
    assert "add" not in FinishedOperations(tmp_path, 7)  # a sample is another run


def test_the_table_says_what_was_sampled_and_what_was_not_survived():
    def operation(name, faults, **tallies):
        kinds = {kind: asdict(tallies.get(kind, Tally())) for kind in KINDS}
        return {
            "operation": name,
            "points": 5,
            "faults": faults,
            "states": 2,
            "seconds": 60.0,
            "kinds": kinds,
        }

    whole = operation("add", 3, kill=Tally(tried=3, left={"before": 2, "after": 1}))
    text = as_markdown([whole], [], "c0ffee")
    assert "No point is left out." in text
    assert "| add | 5 | 2 | 3 / 3 | – |" in text
    assert "Not survived" not in text
    lost = operation(
        "push", 9, kill=Tally(tried=2, left={"after": 1}, failures=["push: kill at point 4: lost"])
    )
    text = as_markdown([whole, lost], ["pull"], "c0ffee")
    assert "was tried of push (2 of 9)" in text
    assert "| kill | 5 | 4 | 2 | 0 | 2 |" in text
    assert "- push: kill at point 4: lost" in text
    assert "no PostgreSQL: pull" in text
