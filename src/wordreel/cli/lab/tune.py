"""`wordreel tune`: adapt the default model to your own captions, if that helps."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wordreel.cli.console.common import JsonOption, counter, default_library, long_time, print_json, printable
from wordreel.cli.lab.evaluate_inputs import CaptionSource

if TYPE_CHECKING:
    from wordreel.lab.training.tune.tune import TuneResult

NAMED = 3  # how many of the names that the library does not have are printed
COUNTED = {  # what each stage counts
    "reading videos": "videos",
    "encoding captions": "captions",
    "cross-validating": "folds of held-out videos",
    "embedding clips": "clips",
}


def tune(
    paths: Annotated[
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
    """Adapt the model to your own captions; refuse where held-out ones gain nothing.

    The default model learns your words; of a backbone, the weights of the experts beside it are chosen.
    Takes minutes and no graphics card. At least 20 videos need captions; every one of them is held out once.
    The tuned model is stored in this library alone, which is embedded again without decoding any video.
    `wordreel use reel` goes back.

    Example: wordreel tune my.library captions.csv
    Example: wordreel tune captions.csv --dry-run
    """
    from wordreel.library import Library

    if len(paths) > 2 or (len(paths) == 2 and library is not None):
        raise typer.BadParameter(
            "name one library and one file of captions: wordreel tune LIBRARY captions.csv"
        )
    where = library or (Path(paths[0]) if len(paths) == 2 else default_library())
    captions = CaptionSource(paths[-1], None, split, ids).read().captions
    counters = {stage: counter(what) for stage, what in COUNTED.items()}
    opened = Library(where, create=False)
    try:
        result = opened.tune(
            captions, dry_run=dry_run, seed=seed, on_progress=lambda now: counters[now.stage](now)
        )
    except KeyboardInterrupt:
        typer.echo(
            "\nwordreel: stopped. The library keeps the model it uses; what tuning learned so far is lost: "
            "the same command starts over.",
            err=True,
        )
        raise typer.Exit(130) from None
    if as_json:
        print_json(asdict(result))
    else:
        _print_result(result, dry_run)


def _print_result(result: TuneResult, dry_run: bool) -> None:
    if result.missing:
        names = ", ".join(printable(name) for name in result.missing[:NAMED])
        more = ", …" if len(result.missing) > NAMED else ""
        typer.echo(
            f"note: {len(result.missing)} captioned names are not in the library and were left out: "
            f"{names}{more}",
            err=True,
        )
    if result.blank:
        typer.echo(f"note: {result.blank} captions have no words and were left out", err=True)
    if result.left:
        typer.echo(f"note: {result.left} further captions of much captioned videos were not needed", err=True)
    typer.echo(
        f"{result.captions} captions of {result.videos} videos, each held out once, among {result.gallery} "
        f"videos ({long_time(result.seconds)}):"
    )
    typer.echo(f"{'':<8} {'R@1':>5} {'R@5':>5} {'R@10':>5} {'MdR':>6}")
    for name, row in (("before", result.before), ("after", result.after)):
        typer.echo(f"{name:<8} {row['R1']:>5.1f} {row['R5']:>5.1f} {row['R10']:>5.1f} {row['MdR']:>6g}")
    typer.echo(
        f"R@1+R@5+R@10: {result.gain:+.1f} [{result.low:+.1f}, {result.high:+.1f}], p = {result.p_value:.2g}"
    )
    typer.echo(f"Everyday queries keep {result.everyday_kept:.0%} of their ten best hits.")
    if not result.better:
        typer.echo("Not better beyond doubt on captions it has not seen: nothing was changed.")
    elif dry_run:
        typer.echo("Better: without --dry-run the tuned model would be stored and used.")
    else:
        typer.echo(
            f"Better: {result.model} ({result.fingerprint}) is in use; {result.embedded} clips were embedded "
            f"and {_learned(result)}. `wordreel use {result.model.removesuffix('-tuned')}` goes back; banks "
            "want a new `wordreel bank check`."
        )


def _learned(result: TuneResult) -> str:
    if not result.weights:
        return f"{result.words} words of yours learned"
    rows = ", ".join(f"{row} {weight:g}" for row, weight in result.weights.items())
    return f"their rows weighted: {rows}"
