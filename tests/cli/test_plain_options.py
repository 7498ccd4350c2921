"""Options converted without pydantic: the same values and errors as typer's own conversion."""

from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from wordreel.cli.plain_options import PlainCommand


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
    assert (plain.exit_code, plain.output, str(ours)) == (typers.exit_code, typers.output, str(theirs))
    assert list(map(type, ours)) == list(map(type, theirs))
