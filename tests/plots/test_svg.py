from xml.etree import ElementTree

import pytest

from wordreel.plots.svg import STYLE, element, escape, number, picture, text

HOSTILE = "</svg><script>alert(1)</script> & \" ' \x00\x1b\ud800"


def test_strange_text_stays_text():
    drawn = picture(HOSTILE, HOSTILE, 10, 10, text(HOSTILE, 1, 2), element("g", class_=HOSTILE))
    root = ElementTree.fromstring(drawn)  # noqa: S314
    assert "script" not in {child.tag.rpartition("}")[2] for child in root.iter()}
    kept = HOSTILE.replace("\x00", "�").replace("\x1b", "�").replace("\ud800", "�")
    assert root[0].text == kept
    assert drawn.encode()  # a lone surrogate would not encode


def test_numbers_are_written_one_way():
    assert [number(v) for v in (1.0, 0.1 + 0.2, -0.004, 1e6, -2.5)] == ["1", "0.3", "0", "1000000", "-2.5"]
    for bad in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="finite"):
            number(bad)


def test_what_is_none_is_left_out():
    assert element("line", stroke_dasharray=None, stroke_width=2) == '<line stroke-width="2"/>'


def test_a_picture_names_itself():
    root = ElementTree.fromstring(picture("Ranks", "how they fall", 30, 20))  # noqa: S314
    ids = root.get("aria-labelledby").split()
    named = {child.get("id"): child.text for child in root}
    assert [named[i] for i in ids] == ["Ranks", "how they fall"]
    assert root.get("role") == "img"


def test_only_a_standing_picture_brings_its_style():
    assert STYLE in picture("a", "b", 10, 10)
    inside = picture("a", "b", 10, 10, standalone=False)
    assert "<style" not in inside
    assert 'viewBox="0 0 10 10"' in inside


def test_style_has_both_schemes_and_fetches_nothing():
    assert "prefers-color-scheme:dark" in STYLE
    assert "url(" not in STYLE
    assert "@import" not in STYLE


def test_escape_order():
    assert escape("&lt;") == "&amp;lt;"
