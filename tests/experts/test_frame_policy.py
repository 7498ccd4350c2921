"""Which frames are looked at: every shot, long and restless ones more often, never too many."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wordreel.experts.frame_policy import POLICY, FramePolicy, middle, stretches

DIM = 136


def film(*shots, start=0.0):
    """Descriptors and times of shots `(seconds, level, change per candidate)`, each in its own colour."""
    rows = []
    for seconds, level, step in shots:
        count = round(seconds * POLICY.rate)
        rows.append(np.full((count, DIM), level) + step * (np.arange(count) % 2)[:, None])
    descriptors = np.concatenate(rows).astype(np.float32)
    return descriptors, start + np.arange(len(descriptors)) / POLICY.rate


def covers(found, count):
    """Stretches cover all candidates in order, none is empty."""
    assert (found[0][0], found[-1][1]) == (0, count)
    assert all(a[1] == b[0] for a, b in pairwise(found))
    assert all(first < end for first, end in found)


@pytest.mark.parametrize(
    ("seconds", "wanted"), [(0.5, 1), (1.0, 2), (2.0, 4), (5.0, 6), (10.0, 6), (15.0, 6), (30.0, 8)]
)
def test_a_video_that_hardly_changes(seconds, wanted):
    descriptors, times = film((seconds, 0.0, 0.0))
    found = stretches(descriptors, times)
    covers(found, len(times))
    assert len(found) == wanted


def test_what_changes_is_seen_twice_as_often():
    assert len(stretches(*film((32, 0.0, 0.0)))) == 8
    assert len(stretches(*film((32, 0.0, 0.2)))) == 16


def test_every_shot_is_seen_and_no_stretch_crosses_a_cut():
    descriptors, times = film((3, 0.0, 0.0), (1.5, 0.9, 0.0), (9, 0.3, 0.0), (2, 1.5, 0.0), start=64.0)
    found = stretches(descriptors, times)
    covers(found, len(times))
    assert {0, 6, 9, 27} <= {first for first, _ in found}
    assert [end - first for first, end in found] == [6, 3, 6, 6, 6, 4]


def test_only_the_beginning_of_a_video_is_an_opening():
    first, later = stretches(*film((6, 0.0, 0.0))), stretches(*film((6, 0.0, 0.0), start=32.0))
    assert (len(first), len(later)) == (POLICY.opening, 2)


def test_a_restless_trailer_has_a_limit():
    trailer = film(*[(2.0, 0.7 * (number % 3), 0.0) for number in range(15)], start=32.0)
    assert len(stretches(*trailer)) == 15
    for limit, most in ((20, 10), (4, 2)):
        found = stretches(*trailer, FramePolicy(per_minute=limit))
        covers(found, 60)
        assert len(found) == most


def test_a_picture_is_one_stretch_and_nothing_is_none():
    assert stretches(*film((0.5, 0.0, 0.0))) == [(0, 1)]
    assert stretches(np.zeros((0, DIM), np.float32), np.zeros(0)) == []


def test_the_middle_is_inside_and_not_the_first_if_there_is_another():
    assert [middle(stretch) for stretch in [(3, 4), (3, 5), (3, 6), (0, 8)]] == [3, 4, 4, 4]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=70), st.booleans())
def test_any_levels_are_covered(levels, opening):
    descriptors = np.repeat(np.array(levels, np.float32)[:, None], DIM, axis=1)
    times = np.arange(len(levels)) / POLICY.rate + (0.0 if opening else 32.0)
    found = stretches(descriptors, times)
    covers(found, len(levels))
    least = POLICY.opening if opening else 1
    assert len(found) <= max(least, np.ceil(POLICY.per_minute * len(levels) / POLICY.rate / 60))
