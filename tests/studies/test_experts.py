from itertools import combinations

import numpy as np
import pytest
from experts_text import findings, name_of

from experts import check_left_out, greedy, parts_of


def test_greedy_adds_the_best_next_one():
    worth = {
        frozenset(some): number
        for number, some in enumerate(c for n in (1, 2, 3) for c in combinations("abc", n))
    }  # a, b, c, ab, ac, bc, abc
    asked = []

    def value(some):
        asked.append(some)
        return worth[frozenset(some)]

    assert greedy("abc", value) == ["c", "b", "a"]
    assert len(asked) == 6
    assert greedy("abc", lambda some: 0) == ["a", "b", "c"]


def test_parts_are_all_alone_without_and_prefixes():
    parts = parts_of(["x", "y", "z"], ["z", "x", "y"])
    assert [part.experts for part in parts if part.kind == "alone"] == [("x",), ("y",), ("z",)]
    assert [part.experts for part in parts if part.kind == "without"] == [("y", "z"), ("x", "z"), ("x", "y")]
    assert [part.experts for part in parts if part.kind == "cumulative"][-1] == parts[0].experts
    assert [part.expert for part in parts if part.kind == "cumulative"] == ["z", "x", "y"]


def test_an_expert_that_is_still_heard_is_refused():
    available = np.array([[True, False, True], [True, False, False]])
    check_left_out(("seen", "motion", "ocr"), available, ("ocr",))
    with pytest.raises(RuntimeError, match="ocr were heard"):
        check_left_out(("seen", "motion", "ocr"), available, ("motion",))


def entry(kind, expert, r1):
    return {"kind": kind, "expert": expert, "mean": {"r1": r1}, "share_of_videos": 0.5}


def test_findings_name_the_best_and_the_most_missed():
    rows = [
        entry("all", "", 20.0),
        entry("alone", "motion", 9.0),
        entry("alone", "appearance", 12.0),
        entry("alone", "sound", 1.0),
        entry("without", "motion", 18.0),
        entry("without", "appearance", 19.0),
        entry("without", "sound", 15.5),
    ]
    said = findings(rows)
    assert "appearance (12.0; motion 9.0)" in said
    assert "sound (+4.5 points lost)" in said


@pytest.mark.parametrize(("kind", "word"), [("alone", "only"), ("without", "all but"), ("cumulative", "+")])
def test_rows_are_named(kind, word):
    assert name_of(entry(kind, "ocr", 1)) == f"{word} ocr (50 %)"
