"""Options gathered in a dataclass are options like any other."""

import inspect
from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner

from wordreel.cli.console.option_groups import expand_options


@dataclass(frozen=True)
class Size:
    width: Annotated[int, typer.Option("--wide", help="How wide.")] = 3
    tall: Annotated[bool | None, typer.Option("--tall/--low")] = None


WHATEVER = Size()


def shell(*words):
    app = typer.Typer(rich_markup_mode=None)

    @app.command()
    @expand_options
    def draw(
        name: Annotated[str, typer.Argument()],
        first: bool = False,
        size: Size = WHATEVER,
        last: Annotated[int, typer.Option()] = 0,
    ) -> None:
        """Draws something."""
        typer.echo(f"{name} {first} {size.width} {size.tall} {last}")

    return CliRunner().invoke(app, words)


def test_fields_are_options_with_their_defaults():
    assert shell("x").stdout == "x False 3 None 0\n"
    assert shell("x", "--low", "--wide", "5", "--last", "2", "--first").stdout == "x True 5 False 2\n"
    assert shell("x", "--wide", "much").exit_code == 2
    assert shell("x", "--size", "1").exit_code == 2


def test_help_lists_them_in_their_place():
    said = shell("--help").stdout
    places = [said.index(word) for word in ("Draws something", "--first", "--wide", "--tall", "--last")]
    assert places == sorted(places)


def test_a_verb_without_groups_stays_as_it_is():
    def plain(one: int, two: str = "b") -> None: ...

    assert inspect.signature(expand_options(plain)) == inspect.signature(plain)
