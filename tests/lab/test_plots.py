"""The data on the axes, what the charts say, and text that would do harm."""

import itertools
from xml.etree import ElementTree

import numpy as np
import pytest

from wordreel.hubness.measures import occurrence_edges, skewness
from wordreel.lab import plots
from wordreel.lab.plots import (
    PlotsMissing,
    Series,
    bar_chart,
    clean,
    draw_bars,
    draw_histogram,
    draw_lines,
    line_chart,
    occurrence_chart,
)


@pytest.fixture
def axes():
    from matplotlib.figure import Figure

    return Figure().add_subplot()


def words(drawn):
    root = ElementTree.fromstring(drawn)  # noqa: S314
    return [element.text for element in root.iter() if element.tag.endswith("}text")]


def test_a_line_goes_through_its_points(axes):
    draw_lines(axes, [Series("a", [0, 5, 10], [0.0, 50.0, 100.0])])
    (line,) = axes.lines
    assert line.get_xydata().tolist() == [[0, 0], [5, 50], [10, 100]]
    assert axes.get_ylim()[0] == 0


def test_gaps_and_single_points(axes):
    draw_lines(axes, [Series("a", [1, 2, 3, 4], [1.0, 2.0, float("nan"), 4.0])])
    line, alone = axes.lines
    assert np.isnan(line.get_ydata()[2])
    assert alone.get_xydata().tolist() == [[4, 4]]
    assert alone.get_marker() == "o"
    assert "<svg" in line_chart([Series("a", [], [])], "t")


def test_a_log_axis_leaves_out_what_is_not_positive(axes):
    draw_lines(axes, [Series("a", [1, 2], [0.0, 3.0])], log_y=True)
    line, alone = axes.lines
    assert np.isnan(line.get_ydata()[0])
    assert alone.get_xydata().tolist() == [[2, 3]]
    assert axes.get_yscale() == "log"


def test_a_band_lies_around_the_line(axes):
    x = np.arange(3.0)
    draw_lines(axes, [Series("a", x, x, x - 1, x + 1)])
    (band,) = axes.collections
    points = band.get_paths()[0].vertices
    assert points[:, 1].min() == -1
    assert points[:, 1].max() == 3
    with pytest.raises(ValueError, match="different lengths"):
        Series("a", [1, 2], [1.0])


@pytest.mark.parametrize("largest", [0, 1, 39, 40, 41, 5000])
def test_occurrence_bins_hold_everything_and_zero_is_alone(largest):
    edges = occurrence_edges(largest)
    assert edges[0] == 0
    assert edges[1] == 1
    assert edges[-1] > largest
    assert len(set(np.diff(edges)[1:])) <= 1
    assert len(edges) <= 44


def test_occurrence_says_skewness_and_counts_every_item(axes):
    rng = np.random.default_rng(1)
    before, after = rng.poisson(rng.gamma(0.4, 60, 300)), rng.poisson(25, 300)
    legend = [
        text for text in words(occurrence_chart({"before": before, "after": after})) if "skewness" in text
    ]
    assert f"before: skewness {skewness(before):.2f}, largest {before.max()}" in legend[0]
    assert f"never {100 * np.mean(after == 0):.1f}%" in legend[1]
    edges = occurrence_edges(max(before.max(), after.max()))
    draw_histogram(axes, {"before": before, "after": after}, edges)
    outlines = axes.patches[1::2]
    for steps, counts in zip(outlines, (before, after), strict=True):
        slow = [sum(left <= n < right for n in counts) for left, right in itertools.pairwise(edges)]
        assert steps.get_data().values.tolist() == [max(0.7, many) for many in slow]
        assert sum(slow) == 300


def test_a_log_axis_of_counts_shows_a_single_item(axes):
    draw_histogram(axes, {"a": [0, 0, 5]}, occurrence_edges(5))
    assert axes.get_ylim()[0] == 0.7
    assert axes.patches[0].get_data().values.tolist() == [2, 0.7, 0.7, 0.7, 0.7, 1]


def test_bars_show_numbers_and_a_dash_for_what_is_missing(axes):
    values = {"R@1": [5.0, float("nan")], "R@10": [20.0, 30.0]}
    drawn = bar_chart(["short", "x" * 60], values, "t")
    assert {"5.0", "20.0", "30.0", "–", "R@1", "R@10"} <= set(words(drawn))
    assert all(len(text) <= 34 for text in words(drawn))
    draw_bars(axes, ["short", "x" * 60], values)
    assert [bar.get_width() for bar in axes.patches] == [5, 0, 20, 30]
    with pytest.raises(ValueError, match="1 values for 2 names"):
        bar_chart(["a", "b"], {"R@1": [1.0]}, "t")


def test_less_than_zero_goes_left(axes):
    draw_bars(axes, ["a", "b"], {"change": [-2.0, 4.0]})
    left, right = axes.patches
    assert left.get_x() + left.get_width() == -2
    assert right.get_x() + right.get_width() == 4


def test_nothing_to_draw_is_no_error():
    assert "<svg" in bar_chart([], {}, "t")
    assert "<svg" in occurrence_chart({"a": [0]})


HOSTILE = "</title><script>alert(1)</script> & \x00 \ud800 $x^2 \\frac"


def chart(title="t", **options):
    return line_chart([Series("a", [1, 2, 3], [4.0, 5.0, 1.0])], title, "x", "y", **options)


def parsed(drawn):
    return ElementTree.fromstring(drawn)  # noqa: S314


def test_the_same_data_draws_the_same_bytes():
    assert chart(log_x=True) == chart(log_x=True)
    assert chart() != chart("another")


def test_the_title_is_in_the_file():
    texts = [element.text for element in parsed(chart("Loss")).iter()]
    assert texts.count("Loss") >= 2, "named and drawn"


def test_hostile_text_stays_text():
    drawn = line_chart([Series(HOSTILE, [1, 2], [1.0, 2.0])], HOSTILE, HOSTILE, HOSTILE)
    root = parsed(drawn)
    assert not any(element.tag.endswith("script") for element in root.iter())
    assert clean(HOSTILE) in [element.text for element in root.iter() if element.tag.endswith("}text")]


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(PlotsMissing, match=r"wordreel\[plots\]"):
        chart()


def test_whether_charts_can_be_drawn(monkeypatch):
    assert plots.available()
    monkeypatch.setattr("wordreel.lab.plots.find_spec", lambda name: None)
    assert not plots.available()
