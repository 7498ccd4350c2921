"""Options converted without pydantic: the same values as by typer, errors in our own words."""

from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

import pytest
import typer
from typer.testing import CliRunner

from wordreel.cli.console.plain_options import PlainCommand


def command(cls, seen):
    app = typer.Typer(add_completion=False, rich_markup_mode=None)

    def verb(
        words: Annotated[str | None, typer.Argument()] = None,
        number: Annotated[int, typer.Option(min=1, max=9)] = 3,
        share: Annotated[float, typer.Option(min=0, max=1)] = 0.5,
        folder: Annotated[Path | None, typer.Option()] = None,
        there: Annotated[Path | None, typer.Option(exists=True)] = None,
        many: Annotated[list[str] | None, typer.Option()] = None,
        flag: Annotated[bool, typer.Option("--flag/--no-flag")] = True,
        maybe: Annotated[bool | None, typer.Option("--maybe/--not")] = None,
        shouted: Annotated[str, typer.Option(parser=str.upper)] = "a",
    ):
        seen.append((words, number, share, folder, there, many, flag, maybe, shouted))

    app.command(cls=cls)(verb)
    return app


@pytest.mark.parametrize(
    "words",
    [
        "",
        "cat --number 4 --share 0.25 --folder /tmp",
        "--number 0",
        "--number 10",
        "--number 4.0",
        "--number +4",
        "--number ٣",
        "--number 99999999999999999999",
        "--share 1.5",
        "--share 1e-1",
        "--share nan",
        "--share .5",
        "--share x",
        "--folder nowhere/at/all",
        "--there nowhere/at/all",
        "--there /",
        "--many a --many b",
        "--no-flag --maybe",
        "--not",
        "--shouted hello",
        "--unknown",
        "--help",
        "--number",
    ],
)
def test_equals_typer(words):
    ours, theirs = [], []
    plain = CliRunner().invoke(command(PlainCommand, ours), words.split())
    typers = CliRunner().invoke(command(None, theirs), words.split())
    assert (plain.exit_code, str(ours)) == (typers.exit_code, str(theirs))
    assert list(map(type, ours)) == list(map(type, theirs))
    if typers.exit_code == 0:
        assert plain.output == typers.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--number x", "'x' is not a whole number from 1 to 9"),
        ("--share 2", "'2' is not a number from 0 to 1"),
        ("--day soon", "'soon' is not a day like 2024-05-31 or a time like 2024-05-31T14:30"),
        ("--form tsv", "'tsv' is not one of csv, edl"),
        ("--sizes 1 --sizes x", "'1 x' is not a whole number"),
        ("--there nowhere/at/all", "'nowhere/at/all' does not exist"),
        ("--numbr 3", "there is no option --numbr; did you mean --number?"),
        ("--colour 3", "there is no option --colour"),
        ("cat dog bird", "unexpected 'dog bird'; put a value of several words in quotes"),
    ],
)
def test_errors_say_what_to_write(words, message):
    app = typer.Typer(add_completion=False, rich_markup_mode=None)

    @app.command(cls=PlainCommand)
    def verb(
        words: Annotated[str | None, typer.Argument()] = None,
        number: Annotated[int, typer.Option(min=1, max=9)] = 3,
        share: Annotated[float, typer.Option(min=0, max=1)] = 0.5,
        day: Annotated[datetime | None, typer.Option()] = None,
        form: Annotated[Literal["csv", "edl"] | None, typer.Option()] = None,
        sizes: Annotated[list[int] | None, typer.Option()] = None,
        there: Annotated[Path | None, typer.Option(exists=True)] = None,
    ):
        raise AssertionError("ran")

    shown = CliRunner().invoke(app, words.split())
    assert shown.exit_code == 2
    assert shown.output.splitlines()[-1].endswith((message, f"{message}."))
