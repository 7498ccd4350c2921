"""`wordreel people …`: the same person over the library."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from wordreel.cli.console.common import (
    JsonOption,
    OpenLibrary,
    VerbGroup,
    clock,
    count_of,
    counter,
    long_time,
    print_result,
    printable,
)

if TYPE_CHECKING:
    from wordreel.people.people_manager import Person

app = VerbGroup(
    "Group faces by person and name them. Off unless you turn it on; nothing leaves this machine.",
    no_args_is_help=True,
)

WhoArgument = Annotated[str, typer.Argument(help="A person by name or by number.")]


@app.command("on")
def on(library: OpenLibrary) -> None:
    """Group faces by person, now and after each add. Nothing leaves this machine.

    Example: wordreel people on
    """
    library.people.turn_on(counter("files grouped"))
    for line in _people_lines(library.people.list(least=2)):
        typer.echo(line)
    typer.echo("→ name somebody: `wordreel people name NUMBER NAME`; undo all: `wordreel people forget`")


@app.command("off")
def off(library: OpenLibrary) -> None:
    """Stop grouping faces and searching for people. Groups and names stay until `people forget`.

    Example: wordreel people off
    """
    library.people.turn_off()
    typer.echo("People are off. Delete groups, names and their vectors: `wordreel people forget`.")


@app.command("list")
def list_(
    library: OpenLibrary,
    who: Annotated[
        str | None, typer.Argument(help="Show every look at this person.", show_default=False)
    ] = None,
    everybody: Annotated[
        bool, typer.Option("--all", help="Also people without a name who are seen only once.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """List people, or every look at one of them with its number.

    Example: wordreel people list Anna
    """
    if who is not None:
        faces = library.people.faces(who)
        paths = {known.content: known.paths[0] for known in library.videos()}
        lines = [
            f"{face.id:>6}  [{clock(face.start)} – {clock(face.end)}]  "
            + printable(paths.get(face.content, face.content))
            for face in faces
        ]
        print_result(as_json, faces, lines)
        return
    people = library.people.list(least=1 if everybody else 2)
    off = [] if library.people.on else ["People are off. Turn them on: `wordreel people on`."]
    print_result(as_json, people, [*_people_lines(people), *off])


@app.command("name")
def name(
    who: WhoArgument,
    name: Annotated[str, typer.Argument(help="The name; an empty one takes it away.")],
    library: OpenLibrary,
) -> None:
    """Give a person a name. Searches understand it: `wordreel search "Anna dances"`.

    Example: wordreel people name 3 Anna
    """
    library.people.name(who, name)
    typer.echo(f"{printable(who)} is {printable(name)}" if name.strip() else f"{printable(who)} has no name")


@app.command("merge")
def merge(
    who: WhoArgument,
    others: Annotated[list[str], typer.Argument(help="The same person under other numbers or names.")],
    library: OpenLibrary,
) -> None:
    """Say that several groups are one person.

    Example: wordreel people merge Anna 7 12
    """
    library.people.merge(who, *others)
    faces = len(library.people.faces(who))
    typer.echo(f"{printable(who)}: {count_of(faces, 'moment')}")


@app.command("split")
def split(
    who: WhoArgument,
    faces: Annotated[list[int], typer.Argument(help="Numbers of looks, as `people list WHO` shows them.")],
    library: OpenLibrary,
) -> None:
    """Say that some looks at a person are somebody else.

    Example: wordreel people split Anna 31 40
    """
    new = library.people.split(who, faces)
    typer.echo(f"{count_of(len(faces), 'moment')} now of person {new}")


@app.command("forget")
def forget(
    library: OpenLibrary,
    who: Annotated[
        str | None, typer.Argument(help="Forget only this person.", show_default="everybody")
    ] = None,
) -> None:
    """Delete a person, or all people, with names, groups and vectors; all of them also turns people off.

    Example: wordreel people forget
    """
    count = library.people.forget(who)
    typer.echo(f"{count} {'person' if count == 1 else 'people'} forgotten.")
    if who is None:
        typer.echo("What the faces expert extracted stays in the library's tracks, without names or groups.")


def _people_lines(people: list[Person]) -> Iterator[str]:
    for person in people:
        where = f"{count_of(person.faces, 'moment')} in {count_of(person.videos, 'file')}"
        yield f"{person.id:>5}  {printable(person.name) or '–':<20}  {where}, {long_time(person.seconds)}"
    named = sum(bool(person.name) for person in people)
    yield f"{len(people)} {'person' if len(people) == 1 else 'people'}, {named} with a name"
