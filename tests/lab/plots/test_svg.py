"""What every chart has in common: well-formed, described, safe with hostile text."""

from xml.etree import ElementTree

import pytest

from wordreel.lab import plots
from wordreel.lab.plots import Series, line_chart
from wordreel.lab.plots.svg import PlotsMissing, clean

HOSTILE = "</title><script>alert(1)</script> & \x00 \ud800 $x^2 \\frac"


def chart(title="t", **options):
    return line_chart([Series("a", [1, 2, 3], [4.0, 5.0, 1.0])], title, "x", "y", **options)


def parsed(drawn):
    return ElementTree.fromstring(drawn)  # noqa: S314


def test_the_same_data_draws_the_same_bytes():
    assert chart(log_x=True) == chart(log_x=True)
    assert chart() != chart("another")


def test_the_title_and_the_description_are_in_the_file():
    texts = [element.text for element in parsed(chart("Loss", description="falls to 1")).iter()]
    assert "falls to 1" in texts
    assert texts.count("Loss") >= 2, "described and drawn"


def test_hostile_text_stays_text():
    drawn = line_chart([Series(HOSTILE, [1, 2], [1.0, 2.0])], HOSTILE, HOSTILE, HOSTILE, description=HOSTILE)
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
    monkeypatch.setattr("wordreel.lab.plots.svg.find_spec", lambda name: None)
    assert not plots.available()
