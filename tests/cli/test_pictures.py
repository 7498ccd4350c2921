"""Pictures in terminals: each protocol is read back by a slow reader of it."""

import base64
import re

import cv2
import numpy as np
import pytest

from wordreel.cli.find import pictures
from wordreel.cli.find.pictures import iterm2, kitty, picture_protocol, side_by_side
from wordreel.errors import WordreelError
from wordreel.search.hits import Hit


@pytest.fixture
def image():
    rng = np.random.default_rng(5)
    return np.repeat(np.repeat(rng.integers(0, 256, (5, 7, 3), np.uint8), 4, axis=0), 4, axis=1)


def read_png(content):
    return cv2.cvtColor(cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB)


def test_kitty_sends_a_png_in_chunks(monkeypatch, image):
    monkeypatch.setattr(pictures, "CHUNK", 100)
    parts = re.findall("\x1b_G([^;]*);([^\x1b]*)\x1b\\\\", kitty(image))
    assert len(parts) > 2
    assert all(len(data) <= 100 for _, data in parts)
    assert [keys[-3:] for keys, _ in parts] == ["m=1"] * (len(parts) - 1) + ["m=0"]
    np.testing.assert_array_equal(read_png(base64.b64decode("".join(data for _, data in parts))), image)


def test_iterm_names_the_size(image):
    found = re.fullmatch("\x1b]1337;File=inline=1;size=(\\d+);width=28px;height=20px:(.*)\a", iterm2(image))
    content = base64.b64decode(found[2])
    assert len(content) == int(found[1])
    np.testing.assert_array_equal(read_png(content), image)


@pytest.mark.parametrize(
    ("variables", "protocol"),
    [
        ({"TERM": "xterm-kitty"}, "kitty"),
        ({"KITTY_WINDOW_ID": "1", "TERM": "xterm-256color"}, "kitty"),
        ({"TERM_PROGRAM": "iTerm.app"}, "iterm2"),
        ({"LC_TERMINAL": "iTerm2"}, "iterm2"),
        ({"TERM_PROGRAM": "WezTerm"}, "iterm2"),
        ({"TERM": "xterm-256color", "WORDREEL_PICTURES": "kitty"}, "kitty"),
    ],
)
def test_the_protocol_of_a_terminal(variables, protocol):
    assert picture_protocol(variables) == protocol


@pytest.mark.parametrize("variables", [{}, {"TERM": "foot"}, {"WORDREEL_PICTURES": "gif"}])
def test_other_terminals_are_told_what_to_do(variables):
    with pytest.raises(WordreelError, match="WORDREEL_PICTURES"):
        picture_protocol(variables)


def test_a_row_of_pictures(image):
    row = side_by_side([image, image[:8]])
    assert row.shape == (20, 2 * 28 + pictures.GAP, 3)
    np.testing.assert_array_equal(row[:, :28], image)
    np.testing.assert_array_equal(row[:8, 28 + pictures.GAP :], image[:8])
    assert not row[8:, 28:].any()


def test_a_preview_of_a_moment(media, monkeypatch):
    monkeypatch.setenv("WORDREEL_PICTURES", "kitty")
    shown = pictures.previewer()(Hit(1, 0.5, media / "station.mp4", 0.5, 2.0, "video", 3.0, "a"))
    strip = read_png(base64.b64decode("".join(re.findall("m=[01];([^\x1b]*)", shown))))
    assert strip.shape[0] == pictures.HEIGHT
    assert strip.shape[1] > pictures.FRAMES * pictures.HEIGHT  # five, each wider than high
    gone = pictures.previewer()(Hit(1, 0.5, media / "gone.mp4", 0.5, 2.0, "video", 3.0, "a"))
    assert gone.startswith("no preview: ")


def test_preview_is_refused_before_the_search(shell, monkeypatch):
    for name in ("KITTY_WINDOW_ID", "TERM_PROGRAM", "LC_TERMINAL", "WORDREEL_PICTURES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    with pytest.raises(WordreelError, match="shows pictures"):
        shell("search", "grand opening", "--preview")
