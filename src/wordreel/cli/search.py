"""`wordreel search`."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wordreel.cli.common import JsonOption, LibraryOption, beta_number, clock, counter, print_json, printable
from wordreel.cli.filters import ANY_FILE, FilterOptions
from wordreel.cli.groups import spread
from wordreel.errors import WordreelError

if TYPE_CHECKING:
    from wordreel.search.caption import CaptionMatch
    from wordreel.search.hits import Hit

MOST_REASONS = 3
LEAST_SHARE = 0.1  # of the score


@spread
def search(
    words: Annotated[str, typer.Argument(help="What to look for, in your own words.")],
    library: LibraryOption,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many videos to show.")] = 10,
    filters: FilterOptions = ANY_FILE,
    moments: Annotated[
        bool, typer.Option("--moments", help="List every matching moment, not the best one of each video.")
    ] = False,
    norm: Annotated[
        str,
        typer.Option(help="Query-bank normalisation: auto, none, dis, is, csls, nnn, cent, gc or sinkhorn."),
    ] = "auto",
    bank: Annotated[str | None, typer.Option(help="Which bank; the checked one unless told.")] = None,
    beta: Annotated[
        str,
        typer.Option(help="β of the inverted softmax, or auto: from the bank's check, or without labels."),
    ] = "auto",
    min_confidence: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Leave out what is less sure; needs a query bank.")
    ] = 0.0,
    open_best: Annotated[bool, typer.Option("--open", help="Play the best hit, from its moment on.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Find videos, and the second in them, with words.

    Example: wordreel search "somebody plays the guitar" --in ~/Videos/2024 --limit 3
    """
    from wordreel.api import Library

    opened = Library(library, create=False)
    number = beta_number(beta)
    choice = opened.banks.choose(norm, bank, number, counter("queries of the bank embedded"))
    hits = opened.search(
        words,
        limit=limit,
        moments=moments,
        norm=norm,
        bank=bank,
        beta=number,
        min_confidence=min_confidence,
        **vars(filters),
    )
    if choice.note and bank is not None:
        advice = f"; {choice.next_step.for_command_line()}" if choice.next_step else ""
        typer.echo(choice.note + advice, err=True)
    if as_json:
        print_json([asdict(hit) for hit in hits])
    elif not hits:
        filled = bool(opened.store.files())
        typer.echo(
            f"Nothing to show: nothing is at least {min_confidence:g} sure; lower --min-confidence."
            if filled and min_confidence > 0
            else "Nothing to show: no file in the library passes these filters."
            if filled
            else "Nothing to show: the library is empty. `wordreel add FOLDER` fills it."
        )
    else:
        for hit in hits:
            typer.echo(line(hit))
            typer.echo(f"      {reasons(hit)}")
    if open_best and hits:
        subprocess.Popen(player(hits[0]), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def player(hit: Hit) -> list[str]:
    """The command that shows a hit: at its moment where a player is known, else as the desktop would."""
    from wordreel.library.paths import is_imported

    if is_imported(hit.path):
        raise WordreelError(f"{hit.path} was imported as features; there is no file to play")
    if mpv := shutil.which("mpv"):
        return [mpv, f"--start={hit.start:.2f}", "--", hit.path]
    if vlc := shutil.which("vlc"):
        return [vlc, f"--start-time={hit.start:.2f}", Path(hit.path).absolute().as_uri()]
    opener = shutil.which("xdg-open") or shutil.which("open")
    if opener is None:
        raise WordreelError(f"no player was found; install mpv, or open {hit.path} yourself")
    return [opener, hit.path]


def line(hit: Hit) -> str:
    """Rank, score, file and moment in one line."""
    when = "picture" if hit.kind == "image" else f"{clock(hit.start)} – {clock(hit.end)}"
    sure = "" if hit.confidence is None else f"  {hit.confidence:.0%} sure"
    return f"{hit.rank:>3}.  {hit.score:.3f}  {printable(hit.path)}  [{when}]{sure}"


def reasons(hit: Hit | CaptionMatch) -> str:
    """The reasons that carried it, strongest first, with their shares of the score; `--json` has all."""
    parts = []
    plain = abs(sum(reason.share for reason in hit.why))  # the score before any normalisation
    carried = [reason for reason in hit.why if reason.share >= LEAST_SHARE * plain]
    for reason in carried[:MOST_REASONS] or hit.why[:1]:
        at = f" at {clock(reason.at[0])}" if reason.at else ""
        parts.append(f"{reason.expert} {reason.share:+.2f}: {printable(reason.what)}{at}")
    return "  ·  ".join(parts) if parts else "no expert had anything to say"
