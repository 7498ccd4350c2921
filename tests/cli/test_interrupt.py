"""Ctrl-C in any verb is reported in one line, also where a library raises another error for it."""

import pytest
import typer

from wordreel import cli


def otherwise():
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt as error:
        raise TypeError("cannot compare") from error


def reported():
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def plainly():
    raise KeyboardInterrupt


def ended(monkeypatch, capsys, verb):
    app = typer.Typer()
    app.command()(verb)
    monkeypatch.setattr("wordreel.cli.app.app", lambda prog_name: app([]))
    with pytest.raises(SystemExit) as found:
        cli.main()
    return found.value.code, capsys.readouterr().err


@pytest.mark.parametrize("verb", [plainly, otherwise])
def test_a_stop_is_reported(monkeypatch, capsys, verb):
    code, said = ended(monkeypatch, capsys, verb)
    assert code == 130
    assert said.strip() == "wordreel: stopped. Nothing is lost; the same command resumes."


def test_a_verb_that_reported_it_is_not_repeated(monkeypatch, capsys):
    assert ended(monkeypatch, capsys, reported) == (130, "")


def test_other_errors_stay(monkeypatch, capsys):
    def broken(prog_name):
        raise ZeroDivisionError

    monkeypatch.setattr("wordreel.cli.app.app", broken)
    with pytest.raises(ZeroDivisionError):
        cli.main()
