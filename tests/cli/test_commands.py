"""What a command line's errors say."""

from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

import pytest
import typer
from typer.testing import CliRunner

from wordreel.cli.console.commands import Command


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--number x", "'x' is not a whole number from 1 to 9"),
        ("--share 2", "'2' is not a number from 0 to 1"),
        ("--day soon", "'soon' is not a day like 2024-05-31 or a time like 2024-05-31T14:30"),
        ("--form tsv", "'tsv' is not one of csv, edl"),
        ("--sizes 1 --sizes x", "'x' is not a whole number"),
        ("--there nowhere/at/all", "'nowhere/at/all' does not exist"),
        ("--numbr 3", "there is no option --numbr; did you mean --number?"),
        ("--colour 3", "there is no option --colour"),
        ("cat dog bird", "unexpected 'dog bird'; put a value of several words in quotes"),
    ],
)
def test_errors_say_what_to_write(words, message):
    app = typer.Typer(add_completion=False, rich_markup_mode=None)

    @app.command(cls=Command)
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
