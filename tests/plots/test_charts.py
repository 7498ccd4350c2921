import itertools
from xml.etree import ElementTree

import numpy as np
import pytest

from wordreel.hubness.measures import skewness
from wordreel.plots import Series, bar_chart, histogram, line_chart, occurrence_chart
from wordreel.plots.histogram import log_edges
from wordreel.plots.occurrence import edges_for


def shapes(drawn, tag):
    root = ElementTree.fromstring(drawn)  # noqa: S314
    return [child for child in root.iter() if child.tag.rpartition("}")[2] == tag]


def words(drawn):
    return [child.text for child in shapes(drawn, "text")]


def bars(drawn):
    """What each bar says of itself when it is pointed at."""
    return [bar[0].text for bar in shapes(drawn, "rect") if len(bar)]


def test_the_same_data_draws_the_same_bytes():
    def drawn():
        return line_chart([Series("a", [1, 2, 3], [4.0, 5.0, 1.0])], "t", log_x=True)

    assert drawn() == drawn()


def test_a_line_goes_through_its_points():
    (line,) = shapes(line_chart([Series("a", [0, 5, 10], [0.0, 50.0, 100.0])], "t"), "polyline")
    points = [tuple(map(float, p.split(","))) for p in line.get("points").split()]
    assert points[1] == pytest.approx(tuple(np.mean([points[0], points[2]], axis=0)), abs=0.01)
    assert points[0][1] > points[2][1]  # up is less


def test_gaps_and_single_points():
    drawn = line_chart([Series("a", [1, 2, 3, 4], [1.0, 2.0, float("nan"), 4.0])], "t")
    assert len(shapes(drawn, "polyline")) == 1
    assert len(shapes(drawn, "circle")) == 1
    assert line_chart([Series("a", [], [])], "t")
    assert len(shapes(line_chart([Series("a", [1, 2], [0.0, 3.0])], "t", log_y=True), "circle")) == 1


def test_a_band_is_closed_around_the_line():
    x = np.arange(3.0)
    (band,) = shapes(line_chart([Series("a", x, x, x - 1, x + 1)], "t"), "polygon")
    assert len(band.get("points").split()) == 6
    with pytest.raises(ValueError, match="different lengths"):
        Series("a", [1, 2], [1.0])


def test_histogram_counts_like_a_loop():
    rng = np.random.default_rng(0)
    values = rng.integers(1, 500, 2000)
    edges = log_edges(1, 500)
    said = bars(histogram({"ranks": values}, edges, "t", log_x=True))
    slow = []
    for left, right in itertools.pairwise(edges):
        count = sum(left <= v < right for v in values)
        name = f"{left:g}" if right - left == 1 else f"{left:g}–{right - 1:g}"
        slow += [f"ranks {name}: {count}"] if count else []
    assert said == slow
    assert sum(int(text.rpartition(" ")[2]) for text in said) == 2000


def test_log_edges_begin_with_one_alone_and_hold_all():
    for high in (1, 2, 3, 10, 657, 59_800):
        edges = log_edges(1, high)
        assert edges[:2].tolist() == [1, 2]
        assert edges[-1] == high + 1
        assert (np.diff(edges) >= 1).all()
    with pytest.raises(ValueError, match="from 1 up"):
        log_edges(0, 3)


def test_histogram_edges_must_go_up():
    for bad in ([1.0], [1.0, 1.0], [2.0, 1.0]):
        with pytest.raises(ValueError, match="edges"):
            histogram({"a": [1]}, bad, "t")


@pytest.mark.parametrize("largest", [0, 1, 39, 40, 41, 5000])
def test_occurrence_bins_hold_everything_and_zero_is_alone(largest):
    edges = edges_for(largest)
    assert edges[0] == 0
    assert edges[1] == 1
    assert edges[-1] > largest
    assert len(set(np.diff(edges)[1:])) <= 1
    assert len(edges) <= 44


def test_occurrence_says_skewness_and_counts_every_item():
    rng = np.random.default_rng(1)
    before, after = rng.poisson(rng.gamma(0.4, 60, 300)), rng.poisson(25, 300)
    drawn = occurrence_chart({"before": before, "after": after})
    legend = [text for text in words(drawn) if "skewness" in text]
    assert f"before: skewness {skewness(before):.2f}, largest {before.max()}" in legend[0]
    assert f"never {100 * np.mean(after == 0):.1f}%" in legend[1]
    total = sum(int(text.rpartition(" ")[2]) for text in bars(drawn))
    assert total == 600


def test_bars_show_numbers_and_say_what_is_missing():
    drawn = bar_chart(["short", "x" * 60], {"R@1": [5.0, float("nan")], "R@10": [20.0, 30.0]}, "t")
    assert {"5.0", "20.0", "30.0", "–", "R@1", "R@10"} <= set(words(drawn))
    lengths = [float(bar.get("width")) for bar in shapes(drawn, "rect") if len(bar)]
    assert lengths[1] / lengths[0] == pytest.approx(4, rel=0.01)
    assert all(len(text) <= 34 for text in words(drawn))
    with pytest.raises(ValueError, match="1 values for 2 names"):
        bar_chart(["a", "b"], {"R@1": [1.0]}, "t")


def test_less_than_zero_goes_left():
    drawn = bar_chart(["a", "b"], {"change": [-2.0, 4.0]}, "t")
    left, right = (bar for bar in shapes(drawn, "rect") if len(bar))
    end = float(left.get("x")) + float(left.get("width"))
    assert end == pytest.approx(float(right.get("x")), abs=0.02)


def test_nothing_to_draw_is_no_error():
    assert bar_chart([], {}, "t").startswith("<svg")
    assert histogram({"a": []}, [0.0, 1.0], "t").startswith("<svg")
