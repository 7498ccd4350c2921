"""`wordreel evaluate`."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from wordreel.cli.console.common import JsonOption, LibraryOption, OnOption, print_json, printable
from wordreel.cli.console.option_groups import expand_options
from wordreel.cli.lab.evaluate_inputs import CaptionSource, Counting, command
from wordreel.cli.lab.evaluate_library import evaluate_library
from wordreel.cli.lab.evaluate_matrices import evaluate_matrices
from wordreel.cli.lab.evaluate_options import (
    ARRAYS,
    BankOptions,
    CaptionOptions,
    GroupingOptions,
    JudgedOptions,
    ReportOptions,
)
from wordreel.cli.lab.evaluate_pictures import INSTANCE, evaluate_pictures
from wordreel.cli.lab.evaluate_scored import Evaluated


@expand_options
def evaluate(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE…",
            help="Similarities [captions, videos] (.npy, .npz, .safetensors, .h5, .pkl, .pt); or captions of "
            "a library's videos (.csv, .jsonl, .json, FILE.json:key); or a protocol's name, with --data; or "
            "a TREC run, with --qrels. Several matrices, of several seeds, give mean ± standard deviation.",
        ),
    ],
    library: LibraryOption,
    captions: CaptionOptions,
    grouping: GroupingOptions,
    bank: BankOptions,
    report: ReportOptions,
    judged: JudgedOptions,
    direction: Annotated[
        Literal["t2v", "v2t", "both"],
        typer.Option(help="Direction: text to video (t2v), video to text (v2t) or both."),
    ] = "both",
    v2t: Annotated[
        Literal["ce", "clip"] | None,
        typer.Option(
            help="How video-to-text ranks are counted: by the best caption (ce) or by groups (clip).",
            show_default="the protocol's, or ce",
        ),
    ] = None,
    modality: Annotated[
        Literal["video", "image", "audio"] | None,
        typer.Option(help="What is searched, for the tables.", show_default="the protocol's, or video"),
    ] = None,
    on: OnOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure retrieval: of a similarity matrix, a library with captions of its videos, or a TREC run.

    Plain numbers come first, and every number carries its post-processing label. Those of test-is and dsl are
    labelled transductive: they use all test queries.

    Example: wordreel evaluate captions.json --ids splits.json:official.test --out results/mine
    Example: wordreel evaluate sims.npy --captions-per-video 20 --v2t clip
    Example: wordreel evaluate sims.npy --bank train.npy --method dis --method test-is --method dsl
    Example: wordreel evaluate run.trec --qrels qrels.txt
    Example: wordreel evaluate cub --data CUB_200_2011 --embeddings pictures.npy
    """
    from wordreel.hubness import Direction

    directions = tuple(Direction) if direction == "both" else (Direction(direction),)
    title = report.title or Path(sources[0]).name
    counting = Counting(title, directions, v2t, tuple(report.seed or ()), modality)
    matrices = captions.data is None and all(Path(each).suffix.lower() in ARRAYS for each in sources)
    _check_options(sources, matrices, captions, grouping, bank, report, judged)
    if on is not None and (matrices or judged != JudgedOptions()):
        raise typer.BadParameter("--on encodes captions of a library; other sources are ranked here.")
    if judged.embeddings is not None or sources[0] in INSTANCE:
        if report.out is not None or report.exports:
            raise typer.BadParameter("--out and the exports are for captions; --json prints these figures.")
        source = CaptionSource(sources[0], captions.data, captions.split, captions.ids)
        evaluate_pictures(source, judged, bank, as_json)
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if judged.qrels is not None:
            facts, written = _run(Path(sources[0]), judged.qrels, counting, report.out)
        elif matrices:
            facts, written = evaluate_matrices(
                [Path(path) for path in sources], grouping, bank, counting, report
            )
        else:
            source = CaptionSource(sources[0], captions.data, captions.split, captions.ids)
            facts, written = evaluate_library(source, library, bank, counting, report, on)
    _print(facts, written, [str(warning.message) for warning in caught], as_json)


def _check_options(
    sources: Sequence[str],
    matrices: bool,
    captions: CaptionOptions,
    grouping: GroupingOptions,
    bank: BankOptions,
    report: ReportOptions,
    judged: JudgedOptions,
) -> None:
    """Refuse options that do not belong to the kind of source."""
    if report.save is not None and report.save.suffix != ".npy":
        raise typer.BadParameter("--save writes a NumPy file; give it a name that ends in .npy.")
    if judged.qrels is not None:
        if len(sources) > 1 or matrices or captions != CaptionOptions() or report.exports or report.save:
            raise typer.BadParameter("--qrels goes with one TREC run, and with no option of other sources.")
        return
    if matrices and (report.save or captions.ids or captions.split):
        raise typer.BadParameter("--save, --ids and --split are for captions, not for a matrix.")
    if len(sources) > 1 and not matrices:
        raise typer.BadParameter("several sources must all be matrices, one per seed.")
    if len(sources) > 1 and (report.exports or grouping.folds):
        raise typer.BadParameter("export one matrix at a time, and cut one into folds.")
    if report.exports and grouping.folds:
        raise typer.BadParameter("export a whole matrix, not its folds.")
    if not matrices:
        bank.of_source(0, 1)
    if not matrices and (grouping.given or bank.video_bank):
        raise typer.BadParameter(
            "--captions-per-video, --counts, --mask, --folds and --video-bank are for a matrix."
        )


def _print(facts: dict[str, Any], written: Sequence[Path], warned: Sequence[str], as_json: bool) -> None:
    from wordreel.lab.reports.tables import plain_text, rows_of

    measured = facts["measured"]
    notes = [*measured["deviations"], *warned]
    if measured.get("missing"):
        notes.append(f"{measured['missing']} captioned videos are not in the library and were left out")
    for note in dict.fromkeys(notes):
        typer.echo(f"note: {note}", err=True)
    if as_json:
        print_json(facts)
        return
    typer.echo(plain_text(rows_of(facts["runs"])), nl=False)
    if written:
        typer.echo(f"wrote {', '.join(printable(path) for path in written)}", err=True)


def _run(path: Path, judgements: Path, counting: Counting, out: Path | None) -> Evaluated:
    from wordreel.lab.evaluate.exchange import QRELS, evaluate_run, read_judgements
    from wordreel.lab.reports.report_files import facts_of, input_of, write_tables

    qrels, items = read_judgements(judgements)
    run = evaluate_run(path, qrels, items, counting.directions[0])
    file = judgements / QRELS if judgements.is_dir() else judgements
    inputs = [input_of("run", path), input_of("qrels", file)]
    measured = {"kind": "run", "queries": len(run.answered), "items": run.items, "deviations": []}
    facts = facts_of(counting.title, command(), inputs, measured, [run], seeds=counting.seeds)
    return facts, write_tables(out, facts) if out else []
