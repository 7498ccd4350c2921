"""`wordreel search`."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from wordreel.cli.common import (
    IndexOption,
    JsonOption,
    LibraryOption,
    beta_number,
    clock,
    counter,
    print_json,
    printable,
)
from wordreel.cli.filters import ANY_FILE, FilterOptions
from wordreel.cli.option_groups import expand_options
from wordreel.errors import NextStep, WordreelError

if TYPE_CHECKING:
    from wordreel.search.hits import CaptionMatch, Hit, Results

MAX_REASONS = 3
MIN_SHARE = 0.1  # of the score


@expand_options
def search(
    library: LibraryOption,
    words: Annotated[
        str | None, typer.Argument(help="What to look for, in your own words.", show_default=False)
    ] = None,
    then: Annotated[str | None, typer.Option(help="What happens later in the same video.")] = None,
    image: Annotated[Path | None, typer.Option(help="Find what looks like this picture.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many videos to show.")] = 10,
    offset: Annotated[int, typer.Option(min=0, help="How many of the best to skip.")] = 0,
    filters: FilterOptions = ANY_FILE,
    moments: Annotated[
        bool, typer.Option("--moments", help="List every matching moment, not the best one of each video.")
    ] = False,
    norm: Annotated[
        str,
        typer.Option(help="Query-bank normalisation: auto, none, dis, is, csls, nnn, cent, gc or sinkhorn."),
    ] = "auto",
    bank: Annotated[str | None, typer.Option(help="The query bank.", show_default="the checked one")] = None,
    beta: Annotated[
        str,
        typer.Option(help="β of the inverted softmax, or auto: from the bank's check, or without labels."),
    ] = "auto",
    compare: Annotated[
        bool, typer.Option("--compare", help="Show the plain and the normalised ranking side by side.")
    ] = False,
    min_confidence: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Leave out less confident hits; needs a query bank.")
    ] = 0.0,
    open_best: Annotated[bool, typer.Option("--open", help="Play the best hit, from its moment on.")] = False,
    index: IndexOption = None,
    form: Annotated[
        Literal["csv", "edl", "otio", "m3u"] | None,
        typer.Option("--format", help="Print a table, an edit list or a playlist for other programs."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Find videos, and the second in them, with words.

    Examples:

      wordreel search "somebody plays the guitar" --in ~/Videos/2024 --limit 3

      wordreel search "somebody opens a door" --then "a cat runs out"

      wordreel search "a red car" --compare

      wordreel search "a red car" --format edl > cars.edl
    """
    from wordreel.api import Library
    from wordreel.search.query import Query

    query = Query.build(
        words,
        then=then,
        image=image,
        limit=limit,
        offset=offset,
        moments=moments,
        norm=norm,
        bank=bank,
        beta=beta_number(beta),
        compare=compare,
        min_confidence=min_confidence,
        **filters.chosen(),
    )
    with Library(library, create=False, index=index) as opened:
        results = opened.search(query, on_progress=counter("queries of the bank embedded"))
        files = bool(opened.store.files())
        listed = None if form is None else opened.export_hits(results, form)
    if results.note and (bank is not None or compare):
        typer.echo(str(results.note), err=True)
    if listed is not None:
        typer.echo(listed, nl=False)
    elif as_json:
        print_json(as_plain(results))
    elif compare and (results or results.plain):
        print_comparison(results)
    elif not results:
        print_nothing(files, min_confidence)
    else:
        for hit in results:
            print_hit(hit)
    if open_best and results:
        subprocess.Popen(player(results[0]), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def as_plain(results: Results[Hit]) -> Any:
    """Results as JSON values: a list of hits; with `--compare` two lists and the normalisation."""
    hits = [asdict(hit) for hit in results]
    if results.plain is None:
        return hits
    return {"norm": results.norm, "plain": [asdict(hit) for hit in results.plain], "normalised": hits}


def print_nothing(files: bool, min_confidence: float) -> None:
    """Say why there are no hits, and what to do."""
    if not files:
        typer.echo("Nothing to show: the library is empty. Add videos: `wordreel add FOLDER`.")
    elif min_confidence > 0:
        typer.echo(f"Nothing to show: no hit is {min_confidence:.0%} sure; lower --min-confidence.")
    else:
        typer.echo("Nothing to show: no file in the library passes these filters.")


def print_hit(hit: Hit) -> None:
    """A hit on one line, the later moment of a `--then` below it, and the reasons."""
    from wordreel.search.hits import SequenceHit

    typer.echo(line(hit))
    if isinstance(hit, SequenceHit):
        typer.echo(f"      then {clock(hit.then[0])} – {clock(hit.then[1])}  ({hit.then_score:.3f})")
    typer.echo(f"      {reasons(hit)}")


def print_comparison(results: Results[Hit]) -> None:
    """Plain ranking against the normalised one: each normalised hit with its change of rank."""
    typer.echo(f"none → {results.norm}")
    for hit, before in results.rank_changes():
        if before is None:
            change = "new"
        elif before == hit.rank:
            change = "="
        else:
            change = f"{'↑' if before > hit.rank else '↓'}{abs(before - hit.rank)}"
        typer.echo(f"{'–' if before is None else before:>3} →{line(hit)}  {change}")
    listed = {hit.content for hit in results}
    for hit in results.plain or ():
        if hit.content not in listed:
            typer.echo(f"{hit.rank:>3} →  –   {hit.score:.3f}  {printable(hit.path)}  out")


def player(hit: Hit) -> list[str]:
    """The command that plays a hit: at its moment with a known player, else as the desktop would."""
    from wordreel.library.paths import is_imported

    if is_imported(hit.path):
        raise WordreelError(f"{hit.path} was imported as features; there is no file to play")
    if mpv := shutil.which("mpv"):
        return [mpv, f"--start={hit.start:.2f}", "--", hit.path]
    if vlc := shutil.which("vlc"):
        return [vlc, f"--start-time={hit.start:.2f}", Path(hit.path).absolute().as_uri()]
    opener = shutil.which("xdg-open") or shutil.which("open")
    if opener is None:
        raise WordreelError("no player was found", NextStep(f"install mpv, or open {hit.path} yourself"))
    return [opener, hit.path]


def line(hit: Hit) -> str:
    """Rank, score, file and moment in one line, and whether the file is known by key frames alone."""
    when = "picture" if hit.kind == "image" else f"{clock(hit.start)} – {clock(hit.end)}"
    confidence = "" if hit.confidence is None else f"  {hit.confidence:.0%} sure"
    quick = "  (quick look)" if hit.analysis == "quick" else ""
    return f"{hit.rank:>3}.  {hit.score:.3f}  {printable(hit.path)}  [{when}]{confidence}{quick}"


def reasons(hit: Hit | CaptionMatch) -> str:
    """The reasons that carried it, strongest first, with their shares of the score; `--json` has all."""
    parts = []
    plain = abs(sum(reason.share for reason in hit.why))  # the score before any normalisation
    carried = [reason for reason in hit.why if reason.share >= MIN_SHARE * plain]
    for reason in carried[:MAX_REASONS] or hit.why[:1]:
        at = f" at {clock(reason.at[0])}" if reason.at else ""
        parts.append(f"{reason.expert} {reason.share:+.2f}: {printable(reason.what)}{at}")
    return "  ·  ".join(parts) if parts else "no expert recognised anything"
