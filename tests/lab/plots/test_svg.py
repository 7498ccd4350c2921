"""What every chart has in common: well-formed, self-contained, for light and dark, safe with hostile text."""

from xml.etree import ElementTree

import pytest

from wordreel.lab import plots
from wordreel.lab.plots import Series, line_chart
from wordreel.lab.plots.svg import COLOURS, DARK_COLOURS, STYLE, PlotsMissing, clean, escape

HOSTILE = "</title><script>alert(1)</script> & \x00 \ud800 $x^2 \\frac"


def chart(title="t", **options):
    return line_chart([Series("a", [1, 2, 3], [4.0, 5.0, 1.0])], title, "x", "y", **options)


def parsed(drawn):
    return ElementTree.fromstring(drawn)  # noqa: S314


def test_the_same_data_draws_the_same_bytes():
    assert chart(log_x=True) == chart(log_x=True)
    assert chart() != chart("another")


def test_a_chart_is_one_element_that_needs_nothing_from_elsewhere():
    for drawn in (chart(), chart(standalone=False)):
        root = parsed(drawn)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert drawn.replace("http://www.w3.org/2000/svg", "").count("http") == 0
        assert "<metadata" not in drawn
        assert root.get("viewBox").startswith("0 0 560")
        assert not any(element.tag.endswith("script") for element in root.iter())


def test_colours_follow_the_scheme_of_the_reader():
    drawn = chart()
    assert f"var(--plot-1,{COLOURS[0]})" in drawn
    assert "prefers-color-scheme:dark" in drawn
    assert all(colour in STYLE for colour in (*COLOURS, *DARK_COLOURS))
    without = chart(standalone=False)
    assert "<style>" not in without.replace('<style type="text/css">', "")
    assert "var(--plot-ink," in without


def test_a_reader_hears_the_title_and_the_description():
    root = parsed(chart("Loss", description="falls to 1"))
    title, description = root[0], root[1]
    assert (title.text, description.text) == ("Loss", "falls to 1")
    assert root.get("aria-labelledby") == f"{title.get('id')} {description.get('id')}"


def test_hostile_text_stays_text():
    drawn = line_chart([Series(HOSTILE, [1, 2], [1.0, 2.0])], HOSTILE, HOSTILE, HOSTILE, description=HOSTILE)
    root = parsed(drawn)
    assert not any(element.tag.endswith("script") for element in root.iter())
    texts = [element.text for element in root.iter() if element.tag.endswith("}text")]
    assert clean(HOSTILE) in texts


def test_escaping():
    assert escape("<a b='c'>&\"") == "&lt;a b=&#39;c&#39;&gt;&amp;&quot;"
    assert escape("a\x00\ud800b\n") == "a��b\n"


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(PlotsMissing, match=r"wordreel\[plots\]"):
        chart()


def test_whether_charts_can_be_drawn(monkeypatch):
    assert plots.available()
    monkeypatch.setattr("wordreel.lab.plots.svg.find_spec", lambda name: None)
    assert not plots.available()
