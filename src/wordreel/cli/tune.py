"""`wordreel tune`: adapt the default model to your own captions, if that helps."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wordreel.cli.common import JsonOption, counter, default_library, long_time, print_json, printable
from wordreel.cli.evaluate_inputs import CaptionSource

if TYPE_CHECKING:
    from wordreel.training.tune.tune import Tuned

NAMED = 3  # of the names that the library does not have, these many are shown


def tune(
    places: Annotated[
        list[str],
        typer.Argument(
            metavar="[LIBRARY] CAPTIONS",
            help="The library's folder (or --library), and captions of its videos: .csv with the columns "
            "file,caption; .tsv, .jsonl, .json or FILE.json:key.",
        ),
    ],
    library: Annotated[
        Path | None,
        typer.Option(
            "--library",
            "-L",
            help="The library's folder.",
            show_default="$WORDREEL_LIBRARY or ~/.local/share/wordreel/library",
        ),
    ] = None,
    split: Annotated[str | None, typer.Option(help="Which split of the captions.")] = None,
    ids: Annotated[
        str | None, typer.Option(help="Only the captions of these ids: a file, or FILE.json:key.key.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Measure only; change nothing.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="How videos are drawn and held out.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Adapt the default model to your own captions; refuse where held-out ones gain nothing.

    Takes minutes and no graphics card. At least 20 videos need captions; every one of them is held out once.
    The tuned model is kept in this library alone, which is embedded anew without decoding any video.
    `wordreel use reel` goes back.

    Example: wordreel tune my.library captions.csv
    Example: wordreel tune captions.csv --dry-run
    """
    from wordreel.api import Library

    if len(places) > 2 or (len(places) == 2 and library is not None):
        raise typer.BadParameter(
            "name one library and one file of captions: wordreel tune LIBRARY captions.csv"
        )
    where = library or (Path(places[0]) if len(places) == 2 else default_library())
    said = CaptionSource(places[-1], None, split, ids).read().captions
    shown = {
        what: counter(what if what != "folds" else "folds of held-out videos")
        for what in ("videos", "captions", "folds", "clips")
    }
    opened = Library(where, create=False)
    try:
        found = opened.tune(
            said,
            dry_run=dry_run,
            seed=seed,
            on_progress=lambda now: shown[now.stage](now),
        )
    except KeyboardInterrupt:
        typer.echo(
            "\nwordreel: stopped. The library keeps the model it uses; what tuning learned so far is lost: "
            "the same command starts over.",
            err=True,
        )
        raise typer.Exit(130) from None
    if as_json:
        print_json(asdict(found))
    else:
        _print(found, dry_run)


def _print(found: Tuned, dry_run: bool) -> None:
    if found.missing:
        names = ", ".join(printable(name) for name in found.missing[:NAMED])
        more = ", …" if len(found.missing) > NAMED else ""
        typer.echo(
            f"note: {len(found.missing)} captioned names are not in the library and were left out: "
            f"{names}{more}",
            err=True,
        )
    if found.blank:
        typer.echo(f"note: {found.blank} captions have no words and were left out", err=True)
    if found.left:
        typer.echo(f"note: {found.left} further captions of much captioned videos were not needed", err=True)
    typer.echo(
        f"{found.captions} captions of {found.videos} videos, each held out once, among {found.gallery} "
        f"videos ({long_time(found.seconds)}):"
    )
    typer.echo(f"{'':<8} {'R@1':>5} {'R@5':>5} {'R@10':>5} {'MdR':>6}")
    for name, row in (("before", found.before), ("after", found.after)):
        typer.echo(f"{name:<8} {row['R1']:>5.1f} {row['R5']:>5.1f} {row['R10']:>5.1f} {row['MdR']:>6g}")
    typer.echo(
        f"R@1+R@5+R@10: {found.gain:+.1f} [{found.low:+.1f}, {found.high:+.1f}], p = {found.p_value:.2g}"
    )
    typer.echo(f"Everyday queries keep {found.everyday_kept:.0%} of their ten best hits.")
    if not found.better:
        typer.echo("Not better beyond doubt on captions it has not seen: nothing was changed.")
    elif dry_run:
        typer.echo("Better: without --dry-run the tuned model would be kept and used.")
    else:
        typer.echo(
            f"Better: {found.model} ({found.fingerprint}) is in use; {found.embedded} clips were embedded "
            f"and {found.words} words of yours learned. `wordreel use reel` goes back; banks want a new "
            "`wordreel bank check`."
        )
