import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wordreel.plots.axes import Scale, covering, label, log_ticks, nice_ticks

REAL = st.floats(-1e9, 1e9)


@given(REAL, st.floats(1e-6, 1e9))
def test_ticks_are_round_even_and_inside(low, span):
    high = low + span
    if not high > low or span < abs(low) * 1e-9:
        return
    ticks = nice_ticks(low, high)
    room = (high - low) * 1e-6
    assert all(low - room <= tick <= high + room for tick in ticks)
    assert len(ticks) <= 7
    if len(ticks) > 2:
        steps = [b - a for a, b in itertools.pairwise(ticks)]
        assert max(steps) - min(steps) <= max(steps) * 0.01


@given(st.floats(1e-6, 1e6), st.floats(1.01, 1e9))
def test_log_ticks_lie_inside_and_are_few(low, factor):
    ticks = log_ticks(low, low * factor)
    assert all(low * 0.999 <= tick <= low * factor * 1.001 for tick in ticks)
    assert len(ticks) <= 11
    assert ticks == sorted(ticks)


def test_scale_is_the_formula():
    assert Scale(0, 10, 100, 300)(2.5) == 150
    down = Scale(1, 1000, 300, 0, log=True)
    assert [down(v) for v in (1, 10, 1000)] == pytest.approx([300, 200, 0])
    assert down(0) == 300  # what lies beyond stays at the end
    with pytest.raises(ValueError, match="larger"):
        Scale(1, 1, 0, 10)
    with pytest.raises(ValueError, match="above 0"):
        Scale(0, 1, 0, 10, log=True)


def test_a_range_is_never_empty():
    assert covering([]) == (0, 1)
    assert covering([0, 0]) == (0, 1)
    assert covering([math.nan, 7], zero=False) == pytest.approx((6.3, 7.7))
    assert covering([-4, 2]) == (-4, 2)
    assert covering([5], log=True) == (5, 50)
    assert covering([0, -1], log=True) == (1, 10)


def test_labels():
    assert [label(v) for v in (0, 9999, 10_000, 1.5e6, 1e-3)] == ["0", "9999", "10k", "1.5M", "0.001"]
    for bad in ((1, 1), (0, math.inf)):
        with pytest.raises(ValueError, match="ticks"):
            nice_ticks(*bad)
    with pytest.raises(ValueError, match="logarithmic"):
        log_ticks(0, 1)
