"""`wordreel tag …`: tags and notes on moments."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wordreel.cli.console.common import (
    JsonOption,
    OpenLibrary,
    VerbGroup,
    clock,
    count_of,
    print_json,
    print_result,
    printable,
    read_json_list,
)
from wordreel.cli.find.one_video import seconds_of

if TYPE_CHECKING:
    from wordreel.catalogue.annotations import Annotation

app = VerbGroup("Tag moments and write notes on them; searches find both.", no_args_is_help=True)

VideoArgument = Annotated[Path, typer.Argument(help="A file of the library.")]
FromOption = Annotated[str | None, typer.Option("--from", help="Where the moment begins: seconds, or 1:05.")]
ToOption = Annotated[str | None, typer.Option("--to", help="Where it ends.")]


@app.command("add")
def add(
    video: VideoArgument,
    tags: Annotated[list[str], typer.Argument(help="Tags.")],
    library: OpenLibrary,
    start: FromOption = None,
    end: ToOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tag a moment, or all of a video.

    Example: wordreel tag add ~/Videos/party.mp4 cake "birthday 2024" --from 1:35 --to 1:48
    """
    first, last = _moment(start, end)
    with library.store.catalogue.transaction():
        made = [library.annotations.tag(video, tag, first, last) for tag in tags]
    print_result(as_json, made, map(_line, made))


@app.command("note")
def note(
    video: VideoArgument,
    text: Annotated[str, typer.Argument(help="The note.")],
    library: OpenLibrary,
    start: FromOption = None,
    end: ToOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write a note on a moment, or on all of a video.

    Example: wordreel tag note ~/Videos/party.mp4 "Uncle Bob drops the cake" --from 1:40 --to 1:44
    """
    made = library.annotations.note(video, text, *_moment(start, end))
    print_result(as_json, [made], [_line(made)])


@app.command("list")
def list_(
    library: OpenLibrary,
    video: Annotated[Path | None, typer.Argument(help="Only of this file.", show_default=False)] = None,
    tag: Annotated[str | None, typer.Option("--tag", help="Only the moments with this tag.")] = None,
    as_json: JsonOption = False,
) -> None:
    """List tags with their numbers of moments, or the tags and notes of a video or a tag.

    Example: wordreel tag list ~/Videos/party.mp4
    """
    found = library.annotations.list(video, tag)
    if video is None and tag is None:
        counts = library.annotations.tags()
        notes = sum(annotation.kind == "note" for annotation in found)
        lines = []
        for count in counts:
            moments, videos = count_of(count.moments, "moment"), count_of(count.videos, "video")
            lines.append(f"{printable(count.tag)}  {moments} in {videos}")
        print_result(as_json, counts, [*lines, f"{count_of(len(counts), 'tag')}, {count_of(notes, 'note')}"])
        return
    paths = {known.content: known.paths[0] for known in library.videos()}
    lines = [f"{_line(mark)}  {printable(paths.get(mark.content, mark.content))}" for mark in found]
    print_result(as_json, found, lines)


@app.command("remove")
def remove(
    numbers: Annotated[list[int], typer.Argument(help="Numbers of tags and notes, as `tag list` shows.")],
    library: OpenLibrary,
    as_json: JsonOption = False,
) -> None:
    """Remove tags and notes by their numbers.

    Example: wordreel tag remove 12 13
    """
    with library.store.catalogue.transaction():
        gone = [library.annotations.remove(number) for number in numbers]
    print_result(as_json, gone, (f"removed {_line(annotation)}" for annotation in gone))


@app.command("export")
def export(library: OpenLibrary) -> None:
    """Print all tags and notes as JSON.

    Example: wordreel tag export > tags.json
    """
    print_json(library.annotations.export())


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="What `tag export` printed.")],
    library: OpenLibrary,
) -> None:
    """Add exported tags and notes to the videos that this library has, all or none of them.

    Example: wordreel tag import tags.json
    """
    rows = read_json_list(file)
    new, missing = library.annotations.import_(rows)
    typer.echo(f"{new} new, {len(rows) - new - missing} known, {missing} of videos that are not here")


def _moment(start: str | None, end: str | None) -> tuple[float | None, float | None]:
    return None if start is None else seconds_of(start), None if end is None else seconds_of(end)


def _line(mark: Annotation) -> str:
    text = printable(mark.text)
    what = text if mark.kind == "tag" else f"“{text}”"
    return f"{mark.id:>4}  [{clock(mark.start)} – {clock(mark.end)}]  {what}"
