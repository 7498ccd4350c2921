"""The interactive prompt, at a real pseudo-terminal and with its parts alone."""

import os
import pty
import stat
import subprocess
import sys
import threading
from contextlib import suppress

import pytest

from wordreel.cli.find import search as prompt
from wordreel.errors import QueryError


def answers(monkeypatch, *lines):
    given = iter(lines)

    def read(_):
        try:
            return next(given)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setattr("builtins.input", read)


@pytest.fixture
def no_history(monkeypatch):
    monkeypatch.setenv("WORDREEL_HISTORY", "off")


@pytest.mark.usefixtures("no_history")
def test_words_are_searched_numbers_are_played(monkeypatch):
    searched, played = [], []
    answers(monkeypatch, "a dog", " 2 ", "a cat  ")
    prompt.ask(searched.append, played.append)
    assert (searched, played) == (["a dog", "a cat"], [2])
    answers(monkeypatch, "one", "", "never")
    prompt.ask(searched.append, played.append)
    assert searched[2:] == ["one"]


@pytest.mark.usefixtures("no_history")
def test_an_error_does_not_end_the_prompt(monkeypatch, capsys):
    def search(words):
        if words == "bad":
            raise QueryError("not like this")
        print(words)

    answers(monkeypatch, "bad", "good")
    prompt.ask(search, print)
    shown = capsys.readouterr()
    assert "wordreel: not like this" in shown.err
    assert "good" in shown.out


def test_history_is_kept_for_the_user_alone(monkeypatch, tmp_path):
    readline = pytest.importorskip("readline")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("WORDREEL_HISTORY", raising=False)
    file = prompt.history_file()
    assert file == tmp_path / "state" / "wordreel" / "history"
    with prompt.history(file):
        readline.add_history("a dog")
    assert "dog" in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with prompt.history(file):
        assert readline.get_history_item(1) == "a dog"
    monkeypatch.setenv("WORDREEL_HISTORY", "off")
    assert prompt.history_file() is None
    with prompt.history(None):
        assert readline.get_current_history_length() == 0


def test_a_prompt_at_a_terminal_answers_query_after_query(built, tmp_path):
    ours, theirs = pty.openpty()
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path), "TERM": "dumb"}
    command = [sys.executable, "-m", "wordreel", "search", "--library", str(built[0] / "library"), "-n", "1"]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    os.write(ours, b"grand opening\ntrain to Vienna\n9\n\n")
    stop = threading.Timer(120, process.kill)
    stop.start()
    shown = b""
    with suppress(OSError):  # the other side is closed
        while part := os.read(ours, 4096):
            shown += part
    assert process.wait() == 0
    stop.cancel()
    os.close(ours)
    text = shown.decode()
    assert text.index("bakery.mp4") < text.index("station.mp4") < text.index("there is no hit 9")


def test_without_a_terminal_the_query_is_missing(shell):
    with pytest.raises(QueryError, match="say what to look for"):
        shell("search")
