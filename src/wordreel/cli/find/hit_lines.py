"""Hits as lines of text: aligned columns, the reasons below, moments of one video folded into one entry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import typer
from rich.cells import cell_len

from wordreel.cli.console.common import clock, count_of, percent, printable
from wordreel.cli.console.terminal import BOLD, DIM, linked, padded, styled

if TYPE_CHECKING:
    from wordreel.search.hits import CaptionMatch, Hit, Results

MAX_REASONS = 3
MIN_SHARE = 0.1  # of the score
MAX_TIMES = 6  # of folded moments
MAX_NAMES = 3  # of long shots
LONG_SHOT = 5  # percent
WIDEST = 100  # columns of a path that others are aligned with


def print_hits(
    results: Sequence[Hit], every: bool = False, preview: Callable[[Hit], str] | None = None
) -> None:
    """Print each hit with its reasons.

    Of several moments of one video the best is printed, and the times of the others.

    Long shots, behind the best hit, share one line; the best pair of moments may itself be one. With `every`,
    each hit and moment has its own; `preview` gives what is printed below a hit.
    """
    from wordreel.search.hits import SequenceHit

    shown, folded = (list(results), {}) if every else fold(results)
    first = 0 if shown and isinstance(shown[0], SequenceHit) else 1
    unlikely = [] if every else [hit for hit in shown[first:] if is_long_shot(hit)]
    shown = shown[: len(shown) - len(unlikely)]  # confidences do not rise, so they are the last
    for hit, text in zip(shown, lines(shown), strict=True):
        typer.echo(text)
        for detail in details(hit, folded.get(hit.rank, ())):
            typer.echo(f"      {styled(detail, DIM)}")
        if preview is not None:
            typer.echo(f"      {preview(hit)}")
    if unlikely:
        typer.echo(styled(long_shots(unlikely), DIM))


def is_long_shot(hit: Hit) -> bool:
    """Return whether the percentage that is printed for a hit is below `LONG_SHOT`."""
    return hit.confidence is not None and int(percent(hit.confidence)[:-1]) < LONG_SHOT


def long_shots(hits: Sequence[Hit]) -> str:
    """Name the hits that are hardly worth a look, in one line."""
    each = "each " if len(hits) > 1 else ""
    names = ", ".join(printable(hit.path.name) for hit in hits[:MAX_NAMES])
    more = ", …" if len(hits) > MAX_NAMES else ""
    count = count_of(len(hits), "long shot")
    return f"  +   {count}, {each}less than {LONG_SHOT}% sure: {names}{more}  (--all lists them)"


def fold(hits: Sequence[Hit]) -> tuple[list[Hit], dict[int, list[Hit]]]:
    """Return the best hit of each video, in order, and by its rank the others of that video."""
    best: dict[str, Hit] = {}
    others: dict[int, list[Hit]] = {}
    for hit in hits:
        first = best.setdefault(hit.content, hit)
        if first is not hit:
            others.setdefault(first.rank, []).append(hit)
    return list(best.values()), others


def lines(hits: Sequence[Hit]) -> list[str]:
    """Rank, score, file and moment of each hit in columns, and whether only key frames are known."""
    paths = [printable(hit.path) for hit in hits]
    times = [_when(hit) for hit in hits]
    widths = [cell_len(path) for path in paths]
    path_width = max((width for width in widths if width <= WIDEST), default=0)
    time_width = max(map(cell_len, times), default=0)
    shown = []
    for hit, path, time in zip(hits, paths, times, strict=True):
        link = padded(path, path_width, styled(linked(str(hit.path)), BOLD))
        sure = "" if hit.confidence is None else f"  {percent(hit.confidence):>4} sure"
        quick = "  (quick look)" if hit.analysis == "quick" else ""
        text = f"{hit.rank:>3}.  {hit.score:.3f}  {link}  {padded(time, time_width)}{sure}{quick}"
        shown.append(text.rstrip())
    return shown


def details(hit: Hit, folded: Sequence[Hit] = ()) -> list[str]:
    """Return the lines below a hit: the other moment of a pair, the reasons, other moments of its video."""
    from wordreel.search.hits import Match, SequenceHit

    below = []
    if isinstance(hit, SequenceHit):
        below.append(f"then {clock(hit.then[0])} – {clock(hit.then[1])}  ({hit.then_score:.3f})")
    like = ""
    if isinstance(hit, Match) and hit.like[1] > hit.like[0]:
        like = f"like {clock(hit.like[0])} – {clock(hit.like[1])}  ·  "
    below.append(like + reasons(hit))
    if folded:
        first = ", ".join(clock(moment.start) for moment in folded[:MAX_TIMES])
        rest = f" and {len(folded) - MAX_TIMES} more" if len(folded) > MAX_TIMES else ""
        below.append(f"also at {first}{rest}  (--all lists them)")
    return below


def reasons(hit: Hit | CaptionMatch) -> str:
    """Return the reasons that carried a hit, strongest first, with their shares; `--json` has all."""
    from wordreel.search.hits import REQUIRED

    required = [reason for reason in hit.why if reason.expert in REQUIRED]
    parts = [f"{reason.expert}: {printable(reason.what)}" for reason in required]
    why = hit.why[len(required) :]  # what a search requires comes first
    plain = abs(sum(reason.share for reason in why))  # the score before any normalisation
    carried = [reason for reason in why if reason.share >= MIN_SHARE * plain]
    for reason in carried[:MAX_REASONS] or why[:1]:
        at = f" at {clock(reason.at[0])}" if reason.at else ""
        parts.append(f"{reason.expert} {reason.share:+.2f}: {printable(reason.what)}{at}")
    return "  ·  ".join(parts) if parts else "no expert recognised anything"


def print_comparison(results: Results[Hit]) -> None:
    """Print the normalised ranking with the change of rank of each hit against the plain one."""
    typer.echo(f"none → {results.norm}")
    ranked = results.rank_changes()
    for (hit, before), text in zip(ranked, lines([hit for hit, _ in ranked]), strict=True):
        if before is None:
            change = "new"
        elif before == hit.rank:
            change = "="
        else:
            change = f"{'↑' if before > hit.rank else '↓'}{abs(before - hit.rank)}"
        typer.echo(f"{'–' if before is None else before:>3} →{text}  {change}")
    listed = {hit.content for hit in results}
    for hit in results.plain or ():
        if hit.content not in listed:
            typer.echo(f"{hit.rank:>3} →  –   {hit.score:.3f}  {linked(str(hit.path))}  out")


def _when(hit: Hit) -> str:
    return "[picture]" if hit.kind == "image" else f"[{clock(hit.start)} – {clock(hit.end)}]"
