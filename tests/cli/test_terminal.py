"""Colours, links and columns, with the environment of real terminals."""

import io
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len

from wordreel.cli.console import terminal
from wordreel.cli.console.terminal import has_colours, linked, padded, styled
from wordreel.cli.find import hit_lines
from wordreel.search.hits import Hit, Match, Reason, SequenceHit


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def at_terminal(monkeypatch):
    """Standard output is a terminal with just these variables."""

    def set_up(**variables):
        known = {"TERM": "xterm-256color", **variables}
        monkeypatch.setattr(terminal.os, "environ", known)
        monkeypatch.setattr(sys, "stdout", Terminal())

    return set_up


def hit(rank, path, start=0.0, content="a", confidence=None, kind="video", make=Hit, **more):
    why = (Reason("seen", 0.3, "a dog"),)
    return make(rank, 0.5, Path(path), start, start + 2, kind, 9.0, content, why, confidence, **more)


def test_colours_are_for_terminals_that_want_them(at_terminal, monkeypatch):
    at_terminal()
    assert has_colours()
    assert styled("x", "1") == "\x1b[1mx\x1b[0m"
    assert styled("", "1") == ""
    at_terminal(NO_COLOR="1")
    assert styled("x", "1") == "x"
    at_terminal(NO_COLOR="")  # empty is not set
    assert has_colours()
    at_terminal(TERM="dumb")
    assert not has_colours()
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert styled("x", "1") == "x"


@pytest.mark.parametrize(("term", "links"), [("xterm-256color", True), ("dumb", False)])
def test_paths_are_links_at_terminals(at_terminal, term, links):
    at_terminal(TERM=term)
    shown = linked("/films/a b.mp4")
    assert ("\x1b]8;;file://" in shown and "/films/a%20b.mp4\x1b\\/films/a b.mp4" in shown) == links
    assert linked("b.mp4") == "b.mp4"


def test_a_link_cannot_be_broken_out_of(at_terminal):
    at_terminal(TERM="xterm-kitty")
    shown = linked("/films/\x1b]8;;evil\x07\u202e.mp4")
    assert shown.count("\x1b") == 4
    assert "\u202e" not in shown


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("", 0),
        ("abc", 3),
        ("日本語", 6),
        ("e\u0301te\u0301", 3),
        ("ﾊﾝ", 2),
        ("👍", 2),
        ("ｆ", 2),
    ],
)
def test_widths(text, columns):
    assert cell_len(text) == columns
    assert cell_len(padded(text, 9)) == 9


def test_columns_are_aligned_whatever_the_names_are():
    hits = [hit(1, "/a.mp4", confidence=0.07), hit(2, "/日本.mp4", confidence=1.0)]
    hits += [hit(10, "/e\u0301\n.mp4", 7000), hit(11, "/still.png", kind="image", confidence=0.5)]
    shown = hit_lines.lines(hits)
    assert len({cell_len(text[: text.index("[")]) for text in shown}) == 1
    assert len({cell_len(text[: text.index(" sure")]) for text in shown if "sure" in text}) == 1
    assert "\\n" in shown[2]
    assert not any(text.endswith(" ") for text in shown)


def test_a_very_long_name_does_not_push_the_others_away():
    shown = hit_lines.lines([hit(1, "/" + "x" * 300), hit(2, "/a.mp4")])
    assert cell_len(shown[1]) < 60


def test_moments_of_one_video_are_folded(capsys):
    hits = [hit(n + 1, "/a.mp4", 10.0 * n) for n in range(9)] + [hit(10, "/b.mp4", 1.0, content="b")]
    hit_lines.print_hits(hits)
    shown = capsys.readouterr().out
    assert shown.count("/a.mp4") == shown.count("/b.mp4") == 1
    assert "also at 0:10.0, 0:20.0, 0:30.0, 0:40.0, 0:50.0, 1:00.0 and 2 more  (--all lists them)" in shown
    hit_lines.print_hits(hits, every=True)
    assert capsys.readouterr().out.count("/a.mp4") == 9
    hit_lines.print_hits(hits[:1], preview=lambda one: f"picture of {one.path}")
    assert "      picture of /a.mp4\n" in capsys.readouterr().out


def test_long_shots_share_a_line_that_does_not_contradict_the_percentages(capsys):
    sure = (0.2, 0.05, 0.0499, 0.01, 0.0, 0.0)
    hits = [hit(n + 1, f"/f{n}.mp4", content=str(n), confidence=one) for n, one in enumerate(sure)]
    hit_lines.print_hits(hits)
    shown = capsys.readouterr().out
    assert [line.split()[0] for line in shown.splitlines() if "seen" not in line] == ["1.", "2.", "+"]
    assert "5% sure" in shown.splitlines()[2]
    assert "4 long shots, each less than 5% sure: f2.mp4, f3.mp4, f4.mp4, …  (--all lists them)" in shown
    hit_lines.print_hits(hits[3:5])
    shown = capsys.readouterr().out
    assert "1% sure" in shown  # the best is always shown
    assert "1 long shot, less than 5% sure: f4.mp4" in shown
    hit_lines.print_hits(hits, every=True)
    assert "long shot" not in capsys.readouterr().out


def test_details_of_pairs_and_look_alikes():
    pair = hit(1, "/a.mp4", make=SequenceHit, then=(5.0, 7.0), then_score=0.25)
    assert hit_lines.details(pair) == ["then 0:05.0 – 0:07.0  (0.250)", "seen +0.30: a dog"]
    alike = hit(1, "/a.mp4", make=Match, like=(1.0, 2.0))
    assert hit_lines.details(alike) == ["like 0:01.0 – 0:02.0  ·  seen +0.30: a dog"]
    assert hit_lines.details(hit(1, "/a.png", make=Match)) == ["seen +0.30: a dog"]


def test_a_pair_that_is_a_long_shot_is_folded_even_if_it_is_the_best(capsys):
    pairs = [
        hit(rank, f"{rank}.mp4", content=str(rank), confidence=sure, make=SequenceHit, then=(4.0, 6.0))
        for rank, sure in enumerate((0.004, 0.0), start=1)
    ]
    hit_lines.print_hits(pairs)
    assert capsys.readouterr().out == (
        "  +   2 long shots, each less than 5% sure: 1.mp4, 2.mp4  (--all lists them)\n"
    )
    hit_lines.print_hits([replace(pairs[0], confidence=0.3), pairs[1]])
    printed = capsys.readouterr().out.splitlines()
    assert "1.mp4" in printed[0]
    assert "1 long shot, less than 5% sure: 2.mp4" in printed[-1]
    hit_lines.print_hits(pairs, every=True)
    assert "2.mp4" in capsys.readouterr().out
